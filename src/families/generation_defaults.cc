#include "families/generation_defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/log.h"

namespace trtmc {
namespace {

using AddedTokens = std::map<std::string, TokenId, std::less<>>;

constexpr int64_t kMaxId = INT32_MAX;

// {"128002": {"content": "<think>", ...}, ...}
AddedTokens read_decoder(const JsonCursor& decoder) {
  AddedTokens tokens;
  for (const auto& [key, value] : decoder.members()) {
    TokenId id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0)
      value.fail("its key is no token id");
    tokens.emplace(value.at("content").string(), id);
  }
  return tokens;
}

// [{"id": 128002, "content": "<think>", ...}, ...]
AddedTokens read_list(const JsonCursor& list) {
  AddedTokens tokens;
  for (const JsonCursor& token : list.elements()) {
    tokens.emplace(token.at("content").string(),
                   static_cast<TokenId>(token.at("id").integer_in(0, kMaxId)));
  }
  return tokens;
}

// The member `member` of the file, read by `read`; nothing if there is no such file or member.
std::optional<AddedTokens> read_tokens(const Checkpoint& checkpoint, std::string_view file,
                                       std::string_view member,
                                       AddedTokens (*read)(const JsonCursor&)) {
  const auto text = checkpoint.text_file(file);
  if (!text) return std::nullopt;
  return with_context(file, [&]() -> std::optional<AddedTokens> {
    const Json json = Json::parse(*text);
    const auto found = JsonCursor(json).find_set(member);
    return found ? std::optional(read(*found)) : std::nullopt;
  });
}

void add_eos(const JsonCursor& config, std::string_view file, int64_t vocab_size,
             std::set<TokenId>& ids) {
  const auto eos = config.find_set("eos_token_id");
  if (!eos) return;
  const auto elements =
      eos->json().array() != nullptr ? eos->elements() : std::vector<JsonCursor>{*eos};
  for (const JsonCursor& element : elements) {
    const int64_t id = element.integer();
    if (id >= 0 && id < vocab_size) {
      ids.insert(static_cast<TokenId>(id));
    } else {
      log_warning("{}: {} is {}, outside of the vocabulary of {}, and never ends a text", file,
                  element.path(), id, vocab_size);
    }
  }
}

std::vector<TokenId> read_stop_ids(const Checkpoint& checkpoint,
                                   std::span<const std::string_view> extra_stops) {
  std::set<TokenId> ids;
  const JsonCursor config(checkpoint.config());
  const int64_t vocab_size =
      with_context("config.json", [&] { return config.at("vocab_size").integer_in(1, kMaxId); });
  with_context("config.json", [&] { add_eos(config, "config.json", vocab_size, ids); });
  if (!checkpoint.generation_config().is_null()) {
    with_context("generation_config.json", [&] {
      add_eos(JsonCursor(checkpoint.generation_config()), "generation_config.json", vocab_size,
              ids);
    });
  }
  const AddedTokens tokens = read_added_tokens(checkpoint);
  for (const std::string_view stop : extra_stops) {
    const auto found = tokens.find(stop);
    if (found != tokens.end() && found->second < vocab_size) ids.insert(found->second);
  }
  return {ids.begin(), ids.end()};
}

// Keys that are read here.
constexpr std::string_view kRead[] = {
    "eos_token_id", "temperature", "top_p", "min_p", "top_k", "do_sample", "repetition_penalty"};

// Keys that change no answer of a decoder here: where the file comes from, ids that generate() adds
// or pads with, what it returns beside the tokens, how it keeps its cache and drafts, beams alone.
constexpr std::string_view kWithoutEffect[] = {"transformers_version",
                                               "_from_model_config",
                                               "_commit_hash",
                                               "trust_remote_code",
                                               "generation_kwargs",
                                               "bos_token_id",
                                               "pad_token_id",
                                               "decoder_start_token_id",
                                               "output_attentions",
                                               "output_hidden_states",
                                               "output_scores",
                                               "output_logits",
                                               "return_dict_in_generate",
                                               "use_cache",
                                               "cache_implementation",
                                               "cache_config",
                                               "return_legacy_cache",
                                               "prefill_chunk_size",
                                               "compile_config",
                                               "disable_compile",
                                               "low_memory",
                                               "is_assistant",
                                               "num_assistant_tokens",
                                               "num_assistant_tokens_schedule",
                                               "assistant_confidence_threshold",
                                               "assistant_early_exit",
                                               "assistant_lookbehind",
                                               "target_lookbehind",
                                               "prompt_lookup_num_tokens",
                                               "max_matching_ngram_size",
                                               "early_stopping",
                                               "length_penalty",
                                               "diversity_penalty"};

// Numbers with which GenerationConfig's processors do nothing.
constexpr std::pair<std::string_view, double> kNeutral[] = {{"num_beams", 1},
                                                            {"num_beam_groups", 1},
                                                            {"num_return_sequences", 1},
                                                            {"penalty_alpha", 0},
                                                            {"no_repeat_ngram_size", 0},
                                                            {"encoder_no_repeat_ngram_size", 0},
                                                            {"encoder_repetition_penalty", 1},
                                                            {"typical_p", 1},
                                                            {"epsilon_cutoff", 0},
                                                            {"eta_cutoff", 0},
                                                            {"guidance_scale", 1},
                                                            {"min_length", 0},
                                                            {"min_new_tokens", 0}};

bool does_nothing(std::string_view key, const JsonCursor& value) {
  const Json& json = value.json();
  if (json.is_null() || json == Json(false)) return true;
  if (json.array() != nullptr) return json.array()->empty();
  if (json.object() != nullptr) return json.object()->empty();
  if (json.kind_name() != "an integer" && json.kind_name() != "a number") return false;
  const auto neutral = std::find_if(std::begin(kNeutral), std::end(kNeutral),
                                    [&](const auto& entry) { return entry.first == key; });
  return neutral != std::end(kNeutral) && value.number() == neutral->second;
}

void warn_of_unread(const JsonCursor& config) {
  const auto in = [](std::string_view key, std::span<const std::string_view> keys) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  for (const auto& [key, value] : config.members()) {
    if (in(key, kRead) || in(key, kWithoutEffect) || does_nothing(key, value)) continue;
    log_warning(
        "generation_config.json: {} is {}, which trtmc leaves out: Transformers' generate() may "
        "answer otherwise",
        key, value.json().dump());
  }
}

double number_or(const JsonCursor& config, std::string_view key, double fallback) {
  const auto member = config.find_set(key);
  return member ? member->number() : fallback;
}

SamplingParams read_sampling(const JsonCursor& config) {
  SamplingParams sampling;
  sampling.temperature = number_or(config, "temperature", sampling.temperature);
  sampling.top_p = number_or(config, "top_p", sampling.top_p);
  sampling.min_p = number_or(config, "min_p", sampling.min_p);
  sampling.repetition_penalty =
      number_or(config, "repetition_penalty", sampling.repetition_penalty);
  if (const auto top_k = config.find_set("top_k"))
    sampling.top_k = static_cast<int>(top_k->integer_in(0, kMaxId));
  // Checked before do_sample has its word: a file that is out of range is out of range.
  validate(sampling);
  const auto do_sample = config.find_set("do_sample");
  if (do_sample && !do_sample->boolean()) sampling.temperature = 0;
  return sampling;
}

}  // namespace

AddedTokens read_added_tokens(const Checkpoint& checkpoint) {
  // The small file first: tokenizer.json has megabytes to parse.
  if (auto tokens =
          read_tokens(checkpoint, "tokenizer_config.json", "added_tokens_decoder", read_decoder))
    return *std::move(tokens);
  if (auto tokens = read_tokens(checkpoint, "tokenizer.json", "added_tokens", read_list))
    return *std::move(tokens);
  return {};
}

GenerationDefaults read_generation_defaults(const Checkpoint& checkpoint,
                                            std::span<const std::string_view> extra_stops) {
  GenerationDefaults defaults;
  defaults.stop_ids = read_stop_ids(checkpoint, extra_stops);
  if (!checkpoint.generation_config().is_null()) {
    defaults.sampling = with_context("generation_config.json", [&] {
      warn_of_unread(JsonCursor(checkpoint.generation_config()));
      return read_sampling(JsonCursor(checkpoint.generation_config()));
    });
  }
  return defaults;
}

OutputMarkers read_output_markers(const Checkpoint& checkpoint) {
  const AddedTokens tokens = read_added_tokens(checkpoint);
  OutputMarkers markers;
  if (tokens.contains("<think>") && tokens.contains("</think>")) {
    markers.think_open = "<think>";
    markers.think_close = "</think>";
  }
  if (tokens.contains("<tool_call>") && tokens.contains("</tool_call>")) {
    markers.tool_open = "<tool_call>";
    markers.tool_close = "</tool_call>";
  }
  return markers;
}

Json generation_config_json(const GenerationDefaults& defaults) {
  const SamplingParams& sampling = defaults.sampling;
  Json config;
  config.set("eos_token_id", Json::Array(defaults.stop_ids.begin(), defaults.stop_ids.end()));
  const bool draws = sampling.temperature > 0;
  config.set("do_sample", draws);
  if (draws) config.set("temperature", sampling.temperature);
  if (sampling.top_p < 1) config.set("top_p", sampling.top_p);
  // Left out where tokens are drawn, Transformers would take 50.
  if (draws || sampling.top_k > 0) config.set("top_k", sampling.top_k);
  if (sampling.min_p > 0) config.set("min_p", sampling.min_p);
  if (sampling.repetition_penalty != 1) {
    config.set("repetition_penalty", sampling.repetition_penalty);
  }
  return config;
}

}  // namespace trtmc
