// SmolLM3 (HuggingFaceTB/SmolLM3-3B), after Transformers' modeling_smollm3.py.
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "families/config_keys.h"
#include "families/generation_defaults.h"
#include "families/model_family.h"
#include "families/rope_config.h"
#include "families/smollm3/rope_schedule.h"

namespace trtmc {
namespace {

constexpr std::string_view kArchitectures[] = {"SmolLM3ForCausalLM"};

// Of SmolLM3Config. The published checkpoints say 5,000,000.
constexpr double kDefaultTheta = 2'000'000;

// Ends a document; published generation configs leave it out, and a -Base model ends with it.
constexpr std::string_view kExtraStops[] = {"<|end_of_text|>"};

constexpr int kMaxSize = 1 << 28;  // What a model can be is for validate() to say.
constexpr int kMaxLayers = 1 << 12;

constexpr std::string_view kReadKeys[] = {"attention_bias",
                                          "head_dim",
                                          "hidden_act",
                                          "hidden_size",
                                          "intermediate_size",
                                          "layer_types",
                                          "mlp_bias",
                                          "model_type",
                                          "no_rope_layers",
                                          "no_rope_layer_interval",
                                          "num_attention_heads",
                                          "num_hidden_layers",
                                          "num_key_value_heads",
                                          "max_position_embeddings",
                                          "original_max_position_embeddings",
                                          "partial_rotary_factor",
                                          "rms_norm_eps",
                                          "rope_parameters",
                                          "rope_scaling",
                                          "rope_theta",
                                          "sliding_window",
                                          "tie_word_embeddings",
                                          "use_sliding_window",
                                          "vocab_size"};

constexpr IgnoredKey kIgnoredKeys[] = {
    {"max_window_layers", "a leftover of Qwen2; the class does not read it"},
    {"pretraining_tp", "how it was trained; the class does not read it"}};

int read_size(const JsonCursor& config, std::string_view key, int max = kMaxSize) {
  return static_cast<int>(config.at(key).integer_in(1, max));
}

bool read_flag(const JsonCursor& config, std::string_view key, bool fallback) {
  const auto flag = config.find_set(key);
  return flag ? flag->boolean() : fallback;
}

void refuse_other_maths(const JsonCursor& config) {
  require_flag(config, "attention_bias", false);
  require_flag(config, "mlp_bias", false);
  const auto activation = config.find_set("hidden_act");
  if (activation && activation->string() != "silu" && activation->string() != "swish") {
    throw Error(ErrorCode::kUnsupported, fmt::format("hidden_act: \"{}\" is not supported, "
                                                     "expected \"silu\"",
                                                     activation->string()));
  }
  const auto type = config.find_set("model_type");
  if (type && type->string() != "smollm3")
    log_warning("config.json: model_type is \"{}\", read as \"smollm3\"", type->string());
}

int read_head_dim(const JsonCursor& config, int hidden_size, int num_heads) {
  if (const auto given = config.find_set("head_dim"))
    return static_cast<int>(given->integer_in(1, kMaxSize));
  if (hidden_size % num_heads != 0) {
    config.at("hidden_size")
        .fail(fmt::format("{}, expected a multiple of num_attention_heads, which is {}",
                          hidden_size, num_heads));
  }
  return hidden_size / num_heads;
}

// A missing key would be 4 in Transformers, whatever the number of heads: a trap, so it must be
// there. null means one for each head.
int read_num_kv_heads(const JsonCursor& config, int num_heads) {
  if (config.at("num_key_value_heads").is_null()) return num_heads;
  return read_size(config, "num_key_value_heads");
}

// Whether layer `layer` has a window by "layer_types". Without the list, Transformers gives one to
// the layers that don't rotate.
std::vector<bool> sliding_layers(const JsonCursor& config, const std::vector<bool>& rotates,
                                 bool use_window, bool has_window) {
  const auto types = config.find_set("layer_types");
  std::vector<bool> slides;
  if (!types) {
    for (const bool rotate : rotates) slides.push_back(use_window && has_window && !rotate);
    return slides;
  }
  for (const JsonCursor& type : types->elements()) {
    const bool sliding = type.string() == "sliding_attention";
    if (!sliding && type.string() != "full_attention") {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("{}: \"{}\" is not supported, expected \"full_attention\" or "
                              "\"sliding_attention\"",
                              type.path(), type.string()));
    }
    // Transformers' own attention kernels disagree on what this means: some apply the window.
    if (sliding && !use_window) type.fail("\"sliding_attention\", but use_sliding_window is false");
    if (sliding && !has_window) type.fail("\"sliding_attention\", but sliding_window is not given");
    slides.push_back(sliding);
  }
  if (slides.size() != rotates.size()) {
    types->fail(fmt::format("{} entries, expected one for each of the {} layers", slides.size(),
                            rotates.size()));
  }
  return slides;
}

std::vector<LayerSpec> read_layers(const JsonCursor& config, int num_layers) {
  const std::vector<bool> rotates = rope_schedule(config, num_layers);
  const auto window = config.find_set("sliding_window");
  const bool use_window = read_flag(config, "use_sliding_window", false);
  const std::vector<bool> slides = sliding_layers(config, rotates, use_window, window.has_value());
  std::vector<LayerSpec> layers;
  for (size_t i = 0; i < rotates.size(); ++i) {
    const int size = slides[i] ? static_cast<int>(window->integer_in(1, kMaxSize)) : 0;
    layers.push_back({.rope = rotates[i], .sliding_window = size});
  }
  return layers;
}

DecoderSpec read_spec(const Json& json) {
  const JsonCursor config(json);
  check_config_keys(config, kReadKeys, kIgnoredKeys);
  refuse_other_maths(config);
  DecoderSpec spec{};
  spec.layers = read_layers(config, read_size(config, "num_hidden_layers", kMaxLayers));
  spec.vocab_size = read_size(config, "vocab_size");
  spec.hidden_size = read_size(config, "hidden_size");
  spec.intermediate_size = read_size(config, "intermediate_size");
  spec.num_heads = read_size(config, "num_attention_heads");
  spec.num_kv_heads = read_num_kv_heads(config, spec.num_heads);
  spec.head_dim = read_head_dim(config, spec.hidden_size, spec.num_heads);
  spec.context_length = read_size(config, "max_position_embeddings");
  spec.rms_norm_eps = static_cast<float>(config.at("rms_norm_eps").number());
  // Missing in files that Transformers 4 saved: it leaves out what equals its default.
  spec.tied_embeddings = read_flag(config, "tie_word_embeddings", true);
  spec.rope = read_rope(config, spec.head_dim, spec.context_length, kDefaultTheta);
  validate(spec);
  return spec;
}

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

std::vector<TensorRule> tensor_rules(const DecoderSpec& spec) {
  std::vector<TensorRule> rules;
  for (const TensorKey& key : tensor_keys(spec)) {
    rules.push_back({.key = key,
                     .sources = {source_name(key)},
                     .shape = tensor_shape(spec, key),
                     .quantizable = !is_norm(key.role)});
  }
  return rules;
}

std::vector<std::string> ignored_tensors(const DecoderSpec& spec) {
  if (spec.tied_embeddings) return {source_name({Role::kLmHead})};
  return {};
}

GenerationDefaults defaults(const Checkpoint& checkpoint) {
  return read_generation_defaults(checkpoint, kExtraStops);
}

}  // namespace

extern const ModelFamily kSmolLm3Family;
const ModelFamily kSmolLm3Family = {.name = "smollm3",
                                    .architectures = kArchitectures,
                                    .strategy = "smollm3_decoder_kv_cache",
                                    .read_spec = read_spec,
                                    .tensor_rules = tensor_rules,
                                    .ignored_tensors = ignored_tensors,
                                    .defaults = defaults,
                                    .markers = read_output_markers};

}  // namespace trtmc
