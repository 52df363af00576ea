#include "families/decoder_tensors.h"

#include <fmt/format.h>

namespace trtmc {
namespace {

std::string source_name(const TensorKey& key) {
  const auto in_layer = [&](std::string_view name) {
    return fmt::format("model.layers.{}.{}.weight", key.layer, name);
  };
  switch (key.role) {
    case Role::kEmbedding:
      return "model.embed_tokens.weight";
    case Role::kFinalNorm:
      return "model.norm.weight";
    case Role::kLmHead:
      return "lm_head.weight";
    case Role::kAttentionNorm:
      return in_layer("input_layernorm");
    case Role::kQProj:
      return in_layer("self_attn.q_proj");
    case Role::kKProj:
      return in_layer("self_attn.k_proj");
    case Role::kVProj:
      return in_layer("self_attn.v_proj");
    case Role::kOProj:
      return in_layer("self_attn.o_proj");
    case Role::kMlpNorm:
      return in_layer("post_attention_layernorm");
    case Role::kGateProj:
      return in_layer("mlp.gate_proj");
    case Role::kUpProj:
      return in_layer("mlp.up_proj");
    case Role::kDownProj:
      return in_layer("mlp.down_proj");
  }
  return {};
}

}  // namespace

std::vector<TensorRule> decoder_tensor_rules(const DecoderSpec& spec) {
  std::vector<TensorRule> rules;
  for (const TensorKey& key : tensor_keys(spec)) {
    rules.push_back({.key = key,
                     .sources = {source_name(key)},
                     .shape = tensor_shape(spec, key),
                     .quantizable = !is_norm(key.role)});
  }
  return rules;
}

std::vector<std::string> decoder_ignored_tensors(const DecoderSpec& spec) {
  if (spec.tied_embeddings) return {source_name({Role::kLmHead})};
  return {};
}

}  // namespace trtmc
