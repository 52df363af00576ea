// SmolLM3 (HuggingFaceTB/SmolLM3-3B), after Transformers' modeling_smollm3.py.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "families/config_keys.h"
#include "families/decoder_config.h"
#include "families/decoder_tensors.h"
#include "families/generation_defaults.h"
#include "families/model_family.h"
#include "families/smollm3/rope_schedule.h"

namespace trtmc {
namespace {

constexpr std::string_view kArchitectures[] = {"SmolLM3ForCausalLM"};

// Of SmolLM3Config. The published checkpoints say a theta of 5,000,000, and Transformers 4 leaves
// tie_word_embeddings out when it saves. A missing num_key_value_heads would be 4 in Transformers,
// whatever the number of heads: a trap, so it must be there.
constexpr DecoderDefaults kDefaults{
    .tied_embeddings = true, .rope_theta = 2'000'000, .kv_heads_required = true};

// Ends a document; published generation configs leave it out, and a -Base model ends with it.
constexpr std::string_view kExtraStops[] = {"<|end_of_text|>"};

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

std::vector<LayerSpec> read_layers(const JsonCursor& config) {
  const std::vector<bool> rotates = rope_schedule(config, read_num_layers(config));
  const auto window = config.find_set("sliding_window");
  const bool use_window = read_flag(config, "use_sliding_window", false);
  const std::vector<bool> slides = sliding_layers(config, rotates, use_window, window.has_value());
  std::vector<LayerSpec> layers;
  for (size_t i = 0; i < rotates.size(); ++i) {
    const int size = slides[i] ? read_size(config, "sliding_window") : 0;
    layers.push_back({.rope = rotates[i], .sliding_window = size});
  }
  return layers;
}

DecoderSpec read_spec(const Json& json) {
  const JsonCursor config(json);
  check_config_keys(config, kReadKeys, kIgnoredKeys);
  require_plain_decoder(config, "smollm3");
  return read_decoder(config, read_layers(config), kDefaults);
}

Json write_spec(const DecoderSpec& spec) {
  Json config = write_decoder(spec);
  Json::Array rotates;
  Json::Array types;
  int window = 0;
  for (const LayerSpec& layer : spec.layers) {
    rotates.emplace_back(layer.rope ? 1 : 0);
    types.emplace_back(layer.sliding_window > 0 ? "sliding_attention" : "full_attention");
    window = std::max(window, layer.sliding_window);
  }
  config.set("no_rope_layers", std::move(rotates));
  config.set("layer_types", std::move(types));
  config.set("use_sliding_window", window > 0);
  config.set("sliding_window", window > 0 ? Json(window) : Json());
  return config;
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
                                    .write_spec = write_spec,
                                    .tensor_rules = decoder_tensor_rules,
                                    .ignored_tensors = decoder_ignored_tensors,
                                    .defaults = defaults,
                                    .markers = read_output_markers};

}  // namespace trtmc
