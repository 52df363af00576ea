// Llama 2 and 3 and what is saved as them (SmolLM2), after Transformers' modeling_llama.py.
#include <fmt/format.h>

#include "base/error.h"
#include "families/config_keys.h"
#include "families/decoder_config.h"
#include "families/decoder_tensors.h"
#include "families/generation_defaults.h"
#include "families/model_family.h"

namespace trtmc {
namespace {

constexpr std::string_view kArchitectures[] = {"LlamaForCausalLM"};

// Of LlamaConfig. Files older than grouped-query attention have no num_key_value_heads.
constexpr DecoderDefaults kDefaults{
    .tied_embeddings = false, .rope_theta = 10'000, .kv_heads_required = false};

constexpr std::string_view kReadKeys[] = {"attention_bias",
                                          "head_dim",
                                          "hidden_act",
                                          "hidden_size",
                                          "intermediate_size",
                                          "max_position_embeddings",
                                          "mlp_bias",
                                          "model_type",
                                          "num_attention_heads",
                                          "num_hidden_layers",
                                          "num_key_value_heads",
                                          "original_max_position_embeddings",
                                          "partial_rotary_factor",
                                          "pretraining_tp",
                                          "rms_norm_eps",
                                          "rope_parameters",
                                          "rope_scaling",
                                          "rope_theta",
                                          "tie_word_embeddings",
                                          "vocab_size"};

constexpr IgnoredKey kIgnoredKeys[] = {
    {"is_llama_config", "a note of the tool that saved it"},
    {"max_sequence_length", "an old name of max_position_embeddings, which must be there"},
    {"rope_interleaved", "how the weights were laid out before they were saved"},
    {"transformers.js_config", "how a browser runs it"}};

// Older classes of Transformers cut the products of such a checkpoint into that many slices, which
// changes their rounding; the class of today has no such path.
void refuse_sliced_products(const JsonCursor& config) {
  const auto slices = config.find_set("pretraining_tp");
  if (!slices || slices->integer() == 1) return;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("pretraining_tp: {} is not supported, expected 1", slices->integer()));
}

// LlamaConfig refuses this even where head_dim is given.
void check_head_split(const JsonCursor& config) {
  const int heads = read_size(config, "num_attention_heads");
  if (read_size(config, "hidden_size") % heads == 0) return;
  config.at("hidden_size")
      .fail(fmt::format("{}, expected a multiple of num_attention_heads, which is {}",
                        read_size(config, "hidden_size"), heads));
}

DecoderSpec read_spec(const Json& json) {
  const JsonCursor config(json);
  check_config_keys(config, kReadKeys, kIgnoredKeys);
  require_plain_decoder(config, "llama");
  refuse_sliced_products(config);
  check_head_split(config);
  const LayerSpec layer{.rope = true, .sliding_window = 0};
  const auto num_layers = static_cast<size_t>(read_num_layers(config));
  return read_decoder(config, std::vector<LayerSpec>(num_layers, layer), kDefaults);
}

GenerationDefaults defaults(const Checkpoint& checkpoint) {
  return read_generation_defaults(checkpoint, {});
}

}  // namespace

extern const ModelFamily kLlamaFamily;
const ModelFamily kLlamaFamily = {.name = "llama",
                                  .architectures = kArchitectures,
                                  .strategy = "llama_decoder_kv_cache",
                                  .read_spec = read_spec,
                                  .write_spec = write_decoder,
                                  .tensor_rules = decoder_tensor_rules,
                                  .ignored_tensors = decoder_ignored_tensors,
                                  .defaults = defaults,
                                  .markers = read_output_markers};

}  // namespace trtmc
