// The names that checkpoints of Llama and its descendants give their weights. Shared by the
// families.
#pragma once

#include <string>
#include <vector>

#include "families/model_family.h"

namespace trtmc {

// "model.layers.3.self_attn.q_proj.weight" for {kQProj, 3}; one source for each tensor.
std::vector<TensorRule> decoder_tensor_rules(const DecoderSpec& spec);

// "lm_head.weight" of a tied checkpoint, which some save nevertheless.
std::vector<std::string> decoder_ignored_tensors(const DecoderSpec& spec);

}  // namespace trtmc
