#include "checkpoint/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/gguf_rope.h"

namespace trtmc {
namespace {

// How llama.cpp's names of architectures read as Transformers' classes. Both lay q and k out for
// interleaved rotation.
struct Architecture {
  std::string_view name;
  std::string_view class_name;
  int no_rope_layer_interval;  // Fixed in llama.cpp and in no key; 0: every layer rotates.
};

constexpr Architecture kArchitectures[] = {{"llama", "LlamaForCausalLM", 0},
                                           {"smollm3", "SmolLM3ForCausalLM", 4}};

constexpr int64_t kMaxSize = int64_t{1} << 31;

// Keys below "<architecture>." that are read here or in gguf_rope.cc, or say nothing new.
constexpr std::string_view kReadKeys[] = {"attention.causal",
                                          "attention.head_count",
                                          "attention.head_count_kv",
                                          "attention.key_length",
                                          "attention.layer_norm_rms_epsilon",
                                          "attention.value_length",
                                          "block_count",
                                          "context_length",
                                          "embedding_length",
                                          "expert_count",
                                          "expert_used_count",
                                          "feed_forward_length",
                                          "rope.dimension_count",
                                          "rope.freq_base",
                                          "rope.scale_linear",
                                          "rope.scaling.attn_factor",
                                          "rope.scaling.factor",
                                          "rope.scaling.finetuned",
                                          "rope.scaling.original_context_length",
                                          "rope.scaling.type",
                                          "rope.scaling.yarn_attn_factor",
                                          "rope.scaling.yarn_beta_fast",
                                          "rope.scaling.yarn_beta_slow",
                                          "rope.scaling.yarn_ext_factor",
                                          "vocab_size"};

// Keys that change the maths unless they are 0.
constexpr std::string_view kRefusedUnlessZero[] = {"attention.clamp_kqv",
                                                   "attention.max_alibi_bias",
                                                   "attention.scale",
                                                   "attention.sliding_window",
                                                   "attention.temperature_scale",
                                                   "embedding_scale",
                                                   "expert_count",
                                                   "logit_scale",
                                                   "residual_scale",
                                                   "use_parallel_residual"};

const Architecture& find_architecture(std::string_view name) {
  for (const Architecture& known : kArchitectures) {
    if (known.name == name) return known;
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("the architecture \"{}\" is not supported, expected \"{}\" or \"{}\"",
                          name, kArchitectures[0].name, kArchitectures[1].name));
}

bool is_zero(const GgufMetadata& metadata, const std::string& key) {
  // A flag is a number here: use_parallel_residual.
  if (metadata.holds_flag(key)) return !*metadata.find_flag(key);
  return *metadata.find_number(key) == 0;
}

void check_keys(const GgufMetadata& metadata, std::string_view prefix) {
  for (const std::string_view key : metadata.keys()) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view name = key.substr(prefix.size());
    if (std::find(std::begin(kRefusedUnlessZero), std::end(kRefusedUnlessZero), name) !=
        std::end(kRefusedUnlessZero)) {
      if (is_zero(metadata, std::string(key))) continue;
      throw Error(ErrorCode::kUnsupported, fmt::format("key \"{}\" is not supported", key));
    }
    if (std::find(std::begin(kReadKeys), std::end(kReadKeys), name) == std::end(kReadKeys))
      log_warning("key \"{}\" is unknown here and ignored", key);
  }
}

// llama.cpp lets every token see every other one where this is false, as in models of embeddings.
void require_causal(const GgufMetadata& metadata, const std::string& prefix) {
  const std::string key = prefix + "attention.causal";
  if (metadata.find_flag(key).value_or(true)) return;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("key \"{}\": false is not supported, expected true", key));
}

// llama.cpp takes the hidden size's share for a length that is not given.
int64_t read_head_dim(const GgufMetadata& metadata, const std::string& prefix, int64_t hidden_size,
                      int64_t num_heads) {
  const auto key_length = metadata.find_integer(prefix + "attention.key_length", 1, kMaxSize);
  const auto value_length = metadata.find_integer(prefix + "attention.value_length", 1, kMaxSize);
  if (hidden_size % num_heads != 0 && !key_length) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("{}embedding_length is {}, expected a multiple of the {} heads", prefix,
                            hidden_size, num_heads));
  }
  const int64_t head_dim = key_length.value_or(hidden_size / num_heads);
  if (value_length.value_or(head_dim) != head_dim) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("heads of {} for keys and of {} for values, expected one size",
                            head_dim, *value_length));
  }
  return head_dim;
}

}  // namespace

Json gguf_config(const GgufMetadata& metadata, const GgufTensorFacts& facts) {
  const Architecture& architecture = find_architecture(metadata.text("general.architecture"));
  const std::string prefix = fmt::format("{}.", architecture.name);
  check_keys(metadata, prefix);
  require_causal(metadata, prefix);
  const auto size = [&](std::string_view key) {
    return metadata.integer(fmt::format("{}{}", prefix, key), 1, kMaxSize);
  };
  const int64_t num_heads = size("attention.head_count");
  const int64_t hidden_size = size("embedding_length");
  const int64_t head_dim = read_head_dim(metadata, prefix, hidden_size, num_heads);
  Json config;
  config.set("architectures", Json::Array{architecture.class_name});
  config.set("model_type", architecture.name);
  config.set("attention_bias", facts.attention_bias);
  config.set("mlp_bias", facts.mlp_bias);
  config.set("hidden_act", "silu");
  config.set("vocab_size", facts.vocab_size);
  config.set("hidden_size", hidden_size);
  config.set("intermediate_size", size("feed_forward_length"));
  config.set("num_hidden_layers", size("block_count"));
  config.set("num_attention_heads", num_heads);
  config.set(
      "num_key_value_heads",
      metadata.find_integer(prefix + "attention.head_count_kv", 1, kMaxSize).value_or(num_heads));
  config.set("head_dim", head_dim);
  config.set("max_position_embeddings", size("context_length"));
  config.set("rms_norm_eps", metadata.number(prefix + "attention.layer_norm_rms_epsilon"));
  config.set("tie_word_embeddings", facts.tied);
  if (architecture.no_rope_layer_interval > 0) {
    config.set("no_rope_layer_interval", architecture.no_rope_layer_interval);
  }
  config.set("rope_parameters", gguf_rope_parameters(metadata, prefix, head_dim, facts.factors));
  return config;
}

Json gguf_generation_config(const GgufMetadata& metadata) {
  Json::Array ends;
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    const auto id = metadata.find_integer(fmt::format("tokenizer.ggml.{}", key), 0, kMaxSize);
    if (id && std::find(ends.begin(), ends.end(), Json(*id)) == ends.end()) ends.emplace_back(*id);
  }
  if (ends.empty()) return {};
  Json config;
  config.set("eos_token_id", std::move(ends));
  return config;
}

}  // namespace trtmc
