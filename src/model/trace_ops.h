// Records a forward pass as text, a line an operation: what a model is, readable in review.
#pragma once

#include <string>

#include "model/decoder_ops.h"

namespace trtmc {

// The walk of decoder_forward(spec), for example "%7 = linear(%5, layers.3.q_proj)". A NoPE layer
// shows no rope line between k_proj and attention.
std::string trace_decoder(const DecoderSpec& spec);

}  // namespace trtmc
