#include "families/config_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace trtmc {
namespace {

constexpr IgnoredKey kGenerallyIgnored[] = {
    {"_attn_implementation", "which kernel computes attention, not what"},
    {"_attn_implementation_autoset", "which kernel computes attention, not what"},
    {"_attn_implementation_internal", "which kernel computes attention, not what"},
    {"_name_or_path", "where the files came from"},
    {"architectures", "chose the family"},
    {"attention_dropout", "training only"},
    {"bad_words_ids", "generation, and no longer read from here"},
    {"begin_suppress_tokens", "generation, and no longer read from here"},
    {"bos_token_id", "the tokenizer says what stands in front of a text"},
    {"chunk_size_feed_forward", "trades memory for time, same numbers"},
    {"diversity_penalty", "generation, and no longer read from here"},
    {"do_sample", "generation, and no longer read from here"},
    {"dtype", "each tensor says its own type"},
    {"early_stopping", "generation, and no longer read from here"},
    {"encoder_no_repeat_ngram_size", "generation, and no longer read from here"},
    {"eos_token_id", "read with the generation defaults"},
    {"exponential_decay_length_penalty", "generation, and no longer read from here"},
    {"finetuning_task", "a note"},
    {"forced_bos_token_id", "generation, and no longer read from here"},
    {"forced_eos_token_id", "generation, and no longer read from here"},
    {"id2label", "classification heads only"},
    {"initializer_range", "training only"},
    {"is_decoder", "has no meaning for a decoder-only class"},
    {"label2id", "classification heads only"},
    {"length_penalty", "generation, and no longer read from here"},
    {"max_length", "generation, and no longer read from here"},
    {"min_length", "generation, and no longer read from here"},
    {"no_repeat_ngram_size", "generation, and no longer read from here"},
    {"num_beam_groups", "generation, and no longer read from here"},
    {"num_beams", "generation, and no longer read from here"},
    {"num_return_sequences", "generation, and no longer read from here"},
    {"output_attentions", "what Python returns besides logits"},
    {"output_hidden_states", "what Python returns besides logits"},
    {"output_scores", "what Python returns besides logits"},
    {"pad_token_id", "nothing is padded"},
    {"prefix", "generation, and no longer read from here"},
    {"problem_type", "classification heads only"},
    {"remove_invalid_values", "generation, and no longer read from here"},
    {"repetition_penalty", "generation, and no longer read from here"},
    {"return_dict", "what Python returns besides logits"},
    {"return_dict_in_generate", "what Python returns besides logits"},
    {"sep_token_id", "unused by decoders"},
    {"suppress_tokens", "generation, and no longer read from here"},
    {"task_specific_params", "a note"},
    {"temperature", "generation, and no longer read from here"},
    {"tf_legacy_loss", "training only"},
    {"tie_encoder_decoder", "there is no encoder"},
    {"tokenizer_class", "tokenizer.json says it all"},
    {"top_k", "generation, and no longer read from here"},
    {"top_p", "generation, and no longer read from here"},
    {"torch_dtype", "each tensor says its own type"},
    {"torchscript", "how Python runs it"},
    {"transformers_version", "a note"},
    {"typical_p", "generation, and no longer read from here"},
    {"unsloth_fixed", "a note of the tool that saved it"},
    {"unsloth_version", "a note of the tool that saved it"},
    {"use_bfloat16", "how Python runs it"},
    {"use_cache", "a leftover of training; a sequence is always cached"},
};

constexpr std::string_view kRefusedUnlessEmpty[] = {"quantization_config", "compression_config",
                                                    "pruned_heads"};
constexpr std::string_view kRefusedIfTrue[] = {"is_encoder_decoder", "add_cross_attention"};

bool is_empty(const Json& value) {
  return value.is_null() || (value.object() != nullptr && value.object()->empty()) ||
         (value.array() != nullptr && value.array()->empty());
}

bool contains(std::span<const IgnoredKey> keys, std::string_view key) {
  return std::any_of(keys.begin(), keys.end(), [&](const auto& known) { return known.key == key; });
}

}  // namespace

std::span<const IgnoredKey> generally_ignored_keys() { return kGenerallyIgnored; }

void require_flag(const JsonCursor& config, std::string_view key, bool expected) {
  const auto flag = config.find_set(key);
  if (!flag || flag->boolean() == expected) return;
  throw Error(ErrorCode::kUnsupported, fmt::format("{}: {} is not supported, expected {}",
                                                   flag->path(), !expected, expected));
}

void check_config_keys(const JsonCursor& config, std::span<const std::string_view> read,
                       std::span<const IgnoredKey> ignored) {
  for (const std::string_view key : kRefusedIfTrue) require_flag(config, key, false);
  for (const auto& [key, value] : config.members()) {
    if (std::find(std::begin(kRefusedUnlessEmpty), std::end(kRefusedUnlessEmpty), key) !=
        std::end(kRefusedUnlessEmpty)) {
      if (is_empty(value.json())) continue;
      throw Error(ErrorCode::kUnsupported, fmt::format("{}: not supported", value.path()),
                  key == "quantization_config"
                      ? "build from the unquantised checkpoint and choose --quant"
                      : "");
    }
    const bool known = std::find(read.begin(), read.end(), key) != read.end() ||
                       std::find(std::begin(kRefusedIfTrue), std::end(kRefusedIfTrue), key) !=
                           std::end(kRefusedIfTrue) ||
                       contains(ignored, key) || contains(kGenerallyIgnored, key);
    if (!known) log_warning("config.json: {} is unknown here and ignored", value.path());
  }
}

}  // namespace trtmc
