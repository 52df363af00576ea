// The names of a decoder's weights: {kQProj, 3} is "layers.3.q_proj".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder_spec.h"
#include "tensor/tensor_view.h"

namespace trtmc {

enum class Role {
  kEmbedding,      // [vocab, hidden]
  kFinalNorm,      // [hidden]
  kLmHead,         // [vocab, hidden]; absent when tied
  kAttentionNorm,  // [hidden], and from here on one per layer
  kQProj,          // [q_width, hidden]
  kKProj,          // [kv_width, hidden]
  kVProj,          // [kv_width, hidden]
  kOProj,          // [hidden, q_width]
  kMlpNorm,        // [hidden]
  kGateProj,       // [intermediate, hidden]
  kUpProj,         // [intermediate, hidden]
  kDownProj,       // [hidden, intermediate]
};

struct TensorKey {
  Role role;
  int layer = -1;
  bool operator==(const TensorKey&) const = default;
};

std::string to_string(const TensorKey& key);                       // "embedding", "layers.3.q_proj"
std::optional<TensorKey> parse_tensor_key(std::string_view name);  // The inverse.

bool is_norm(Role role);  // A vector, kept in f32 and never quantised.

// Every tensor that a decoder of this spec has, in the order in which a bundle stores them (the
// order in which a forward pass reads them), and the shape of each.
std::vector<TensorKey> tensor_keys(const DecoderSpec& spec);
Shape tensor_shape(const DecoderSpec& spec, const TensorKey& key);

}  // namespace trtmc
