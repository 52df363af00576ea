#include "server/sampling_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "api/generation_request.h"
#include "server/api_error.h"
#include "server/request_fields.h"

namespace trtmc {
namespace {

constexpr int kMostInt = std::numeric_limits<int>::max();
constexpr size_t kMostStops = 4;  // As OpenAI has it.
// Each is looked at for every token, on the thread that all answers share.
constexpr size_t kMostStopBytes = 1024;
constexpr size_t kMostStopIds = 128;
constexpr size_t kMostBiases = 1024;

constexpr UnsupportedField kUnsupported[] = {
    {"guided_json"},
    {"guided_regex"},
    {"guided_choice"},
    {"guided_grammar"},
    {"structured_outputs"},
    {"use_beam_search", "false"},
    {"length_penalty", "1.0"},
    {"min_tokens", "0"},
    {"include_stop_str_in_output", "false"},
    {"prompt_logprobs"},
    {"truncate_prompt_tokens"},
    {"logits_processors"},
    {"bad_words", "[]"},
    {"allowed_token_ids"},
    {"return_tokens_as_token_ids", "false"},
    // OpenAI's, of chats or of completions, and asked for of the other too.
    {"best_of", "1"},
    {"suffix", R"("")"},
    {"response_format", R"({"type":"text"})"},
    {"prompt_embeds"},
    {"functions", "[]"},
    {"function_call", R"("none")"},
    {"modalities", R"(["text"])"},
    {"audio"},
    {"web_search_options"},
    {"verbosity", R"("medium")"},
    {"continue_final_message", "false"},
    // Other servers' that change the answer.
    {"typical_p", "1"},
    {"repeat_penalty", "1"},
    {"mirostat", "0"},
    {"min_completion_tokens", "0"},
    {"stop_sequences", "[]"},
    {"json_schema"},
    {"grammar"},
};

void read_number(const JsonCursor& request, std::string_view field, std::optional<double>& value) {
  if (const auto number = request.find_set(field)) value = number->number();
}

void check_count(const JsonCursor& list, size_t count, size_t most) {
  if (count > most) list.fail(fmt::format("{} of them, expected up to {}", count, most));
}

std::string read_stop_text(const JsonCursor& text) {
  if (text.string().empty()) text.fail("empty, expected text");
  if (text.string().size() > kMostStopBytes) {
    text.fail(fmt::format("{} bytes, expected up to {}", text.string().size(), kMostStopBytes));
  }
  return text.string();
}

std::vector<std::string> read_stop(const JsonCursor& stop) {
  if (stop.json().string()) return {read_stop_text(stop)};
  if (!stop.json().array()) {
    stop.fail(fmt::format("{}, expected a string or an array of up to {}", stop.json().kind_name(),
                          kMostStops));
  }
  check_count(stop, stop.json().array()->size(), kMostStops);
  std::vector<std::string> texts;
  for (const JsonCursor& text : stop.elements()) texts.push_back(read_stop_text(text));
  return texts;
}

std::vector<TokenId> read_stop_ids(const JsonCursor& stop, int vocab_size) {
  if (const Json::Array* ids = stop.json().array()) check_count(stop, ids->size(), kMostStopIds);
  return read_ids(stop, vocab_size);
}

std::pair<TokenId, float> read_bias(std::string_view key, const JsonCursor& bias, int vocab_size) {
  TokenId id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  const bool is_plain = error == std::errc() && end == key.data() + key.size() &&
                        key == std::to_string(id);  // "01" would be the token "1" again.
  if (!is_plain || id < 0 || id >= vocab_size) {
    bias.fail(fmt::format("no token's id, expected a number from 0 to {}", vocab_size - 1));
  }
  const double number = bias.number();
  if (number < -100 || number > 100) {
    bias.fail(fmt::format("{}, expected a number from -100 to 100", number));
  }
  return {id, static_cast<float>(number)};
}

std::vector<std::pair<TokenId, float>> read_logit_bias(const JsonCursor& bias, int vocab_size) {
  if (const Json::Object* members = bias.json().object()) {
    check_count(bias, members->size(), kMostBiases);
  }
  std::vector<std::pair<TokenId, float>> result;
  for (const auto& [key, value] : bias.members()) {
    result.push_back(read_bias(key, value, vocab_size));
  }
  return result;
}

// vLLM's: the lower, the sooner.
Priority read_priority(const JsonCursor& priority) {
  const int64_t number = priority.integer();
  if (number == 0) return Priority::kNormal;
  return number < 0 ? Priority::kHigh : Priority::kLow;
}

// The ranges are those of sampling itself, whose complaints begin with the field's name.
[[noreturn]] void throw_as_field_error(const Error& error) {
  const std::string_view message = error.what();
  const size_t colon = message.find(": ");
  if (colon == message.npos) throw error;
  throw FieldError(error.code(), std::string(message.substr(0, colon)), message.substr(colon + 2),
                   error.hint());
}

void read_draws(const JsonCursor& request, int vocab_size, GenerationOptions& options) {
  read_number(request, "temperature", options.temperature);
  read_number(request, "top_p", options.top_p);
  read_number(request, "min_p", options.min_p);
  read_number(request, "repetition_penalty", options.repetition_penalty);
  read_number(request, "presence_penalty", options.presence_penalty);
  read_number(request, "frequency_penalty", options.frequency_penalty);
  options.top_k = optional_int(request, "top_k", -1, kMostInt);
  if (options.top_k == -1) options.top_k = 0;  // vLLM's word for no limit.
  if (const auto seed = request.find_set("seed")) {
    options.seed = static_cast<uint64_t>(seed->integer());
  }
  if (const auto bias = request.find_set("logit_bias")) {
    options.logit_bias = read_logit_bias(*bias, vocab_size);
  }
}

}  // namespace

SamplingFields read_sampling_fields(const JsonCursor& request, int vocab_size) {
  refuse_unsupported(request, kUnsupported);
  SamplingFields fields;
  read_draws(request, vocab_size, fields.options);
  if (const auto stop = request.find_set("stop")) fields.options.stop = read_stop(*stop);
  if (const auto ids = request.find_set("stop_token_ids")) {
    fields.stop_ids = read_stop_ids(*ids, vocab_size);
  }
  fields.n = optional_int(request, "n", 1, kMostChoices).value_or(1);
  fields.ignore_eos = optional_flag(request, "ignore_eos");
  fields.keep_special = !optional_flag(request, "skip_special_tokens", true);
  if (const auto priority = request.find_set("priority")) {
    fields.priority = read_priority(*priority);
  }
  return fields;
}

GenerationRequest make_request(const Manifest& manifest, const SamplingFields& fields,
                               std::vector<TokenId> prompt) {
  GenerationRequest request;
  try {
    request = make_request(manifest, fields.options, std::move(prompt));
  } catch (const Error& error) {
    throw_as_field_error(error);
  }
  request.n = fields.n;
  request.ignore_eos = fields.ignore_eos;
  request.keep_special = fields.keep_special;
  request.priority = fields.priority;
  request.stop_ids.insert(request.stop_ids.end(), fields.stop_ids.begin(), fields.stop_ids.end());
  return request;
}

void check_kept_logprobs(const LoadedModel& model, std::span<const GenerationRequest> requests) {
  int64_t kept = 0;
  for (const GenerationRequest& request : requests) {
    if (!request.logprobs) continue;
    const int room =
        model.engine_model().longest_sequence() - static_cast<int>(request.prompt.size());
    const int tokens = request.max_tokens > 0 ? std::min(request.max_tokens, room) : room;
    kept += int64_t{tokens} * request.n * (*request.logprobs + 1);
  }
  if (kept <= kMostKeptLogprobs) return;
  throw FieldError(ErrorCode::kInvalidArgument, "logprobs",
                   fmt::format("the answers may have {} of them, expected up to {} without "
                               "\"stream\": true",
                               kept, kMostKeptLogprobs),
                   "ask for fewer tokens, answers or alternatives");
}

void check_room(const LoadedModel& model, std::string_view field, std::span<const TokenId> prompt) {
  const int longest = model.engine_model().longest_sequence();
  if (prompt.size() < static_cast<size_t>(longest)) return;
  throw ContextLengthError(std::string(field), prompt.size(), longest);
}

}  // namespace trtmc
