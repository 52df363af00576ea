#include "families/decoder_config.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "families/config_keys.h"
#include "families/rope_config.h"

namespace trtmc {
namespace {

constexpr int kMaxSize = 1 << 28;
constexpr int kMaxLayers = 1 << 12;

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

int read_num_kv_heads(const JsonCursor& config, int num_heads, bool required) {
  const auto given =
      required ? config.at("num_key_value_heads") : config.find("num_key_value_heads");
  if (!given || given->is_null()) return num_heads;
  return read_size(config, "num_key_value_heads");
}

}  // namespace

int read_size(const JsonCursor& config, std::string_view key) {
  return static_cast<int>(config.at(key).integer_in(1, kMaxSize));
}

int read_num_layers(const JsonCursor& config) {
  return static_cast<int>(config.at("num_hidden_layers").integer_in(1, kMaxLayers));
}

bool read_flag(const JsonCursor& config, std::string_view key, bool fallback) {
  const auto flag = config.find_set(key);
  return flag ? flag->boolean() : fallback;
}

void require_plain_decoder(const JsonCursor& config, std::string_view model_type) {
  require_flag(config, "attention_bias", false);
  require_flag(config, "mlp_bias", false);
  const auto activation = config.find_set("hidden_act");
  if (activation && activation->string() != "silu" && activation->string() != "swish") {
    throw Error(ErrorCode::kUnsupported, fmt::format("hidden_act: \"{}\" is not supported, "
                                                     "expected \"silu\"",
                                                     activation->string()));
  }
  const auto type = config.find_set("model_type");
  if (type && type->string() != model_type)
    log_warning("config.json: model_type is \"{}\", read as \"{}\"", type->string(), model_type);
}

DecoderSpec read_decoder(const JsonCursor& config, std::vector<LayerSpec> layers,
                         const DecoderDefaults& defaults) {
  DecoderSpec spec{};
  spec.layers = std::move(layers);
  spec.vocab_size = read_size(config, "vocab_size");
  spec.hidden_size = read_size(config, "hidden_size");
  spec.intermediate_size = read_size(config, "intermediate_size");
  spec.num_heads = read_size(config, "num_attention_heads");
  spec.num_kv_heads = read_num_kv_heads(config, spec.num_heads, defaults.kv_heads_required);
  spec.head_dim = read_head_dim(config, spec.hidden_size, spec.num_heads);
  spec.context_length = read_size(config, "max_position_embeddings");
  spec.rms_norm_eps = static_cast<float>(config.at("rms_norm_eps").number());
  spec.tied_embeddings = read_flag(config, "tie_word_embeddings", defaults.tied_embeddings);
  spec.rope = read_rope(config, spec.head_dim, spec.context_length, defaults.rope_theta);
  validate(spec);
  return spec;
}

Json write_decoder(const DecoderSpec& spec) {
  Json config;
  config.set("vocab_size", spec.vocab_size);
  config.set("hidden_size", spec.hidden_size);
  config.set("intermediate_size", spec.intermediate_size);
  config.set("num_hidden_layers", spec.num_layers());
  config.set("num_attention_heads", spec.num_heads);
  config.set("num_key_value_heads", spec.num_kv_heads);
  config.set("head_dim", spec.head_dim);
  config.set("hidden_act", "silu");
  config.set("attention_bias", false);
  config.set("mlp_bias", false);
  config.set("max_position_embeddings", spec.context_length);
  config.set("rms_norm_eps", shortest_double(spec.rms_norm_eps));
  config.set("tie_word_embeddings", spec.tied_embeddings);
  write_rope(spec.rope, config);
  return config;
}

}  // namespace trtmc
