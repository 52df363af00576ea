// All that the runtime must know of a decoder: a family is this data and nothing else.
#pragma once

#include <variant>
#include <vector>

namespace trtmc {

// YaRN as Transformers defines it (modeling_rope_utils._compute_yarn_parameters), every default
// resolved.
struct YarnScaling {
  double factor;
  double beta_fast;
  double beta_slow;
  double attention_factor;  // Multiplies cos and sin.
  int original_context;     // original_max_position_embeddings
  bool truncate;            // Correction range rounded to whole dimensions.
  bool operator==(const YarnScaling&) const = default;
};

struct Llama3Scaling {
  double factor;
  double low_freq_factor;
  double high_freq_factor;
  int original_context;
  bool operator==(const Llama3Scaling&) const = default;
};

struct RopeSpec {
  double theta;
  int rotary_dim;  // How many leading values of a head rotate: pairs (i, i + rotary_dim / 2).
  std::variant<std::monostate, YarnScaling, Llama3Scaling> scaling;
  bool operator==(const RopeSpec&) const = default;
};

struct LayerSpec {
  bool rope;           // False: a NoPE layer; neither rotation nor attention factor.
  int sliding_window;  // The last so many tokens are seen, its own included; 0: every one.
  bool operator==(const LayerSpec&) const = default;
};

struct DecoderSpec {
  int vocab_size;
  int hidden_size;
  int intermediate_size;
  int num_heads;
  int num_kv_heads;  // Divides num_heads; query head h reads KV head h / (num_heads /
                     // num_kv_heads).
  int head_dim;
  int context_length;  // The most tokens a sequence may have.
  float rms_norm_eps;
  bool tied_embeddings;  // The output projection is the embedding.
  RopeSpec rope;
  std::vector<LayerSpec> layers;  // Its size is the number of layers.

  int num_layers() const { return static_cast<int>(layers.size()); }
  int q_width() const { return num_heads * head_dim; }
  int kv_width() const { return num_kv_heads * head_dim; }
  bool operator==(const DecoderSpec&) const = default;
};

// Throws kInvalidArgument naming the field that makes no sense (sizes < 1, heads that don't divide,
// a rotary dimension that is odd or larger than the head, scaling factors out of range, …). A spec
// that passed is safe to compute with.
void validate(const DecoderSpec& spec);

}  // namespace trtmc
