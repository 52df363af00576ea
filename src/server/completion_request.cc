#include "server/completion_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace trtmc {
namespace {

constexpr int kMostLogprobs = 20;
constexpr int kDefaultMaxTokens = 16;  // OpenAI's.
constexpr size_t kMostAnswers = 128;   // Of all prompts together.
constexpr size_t kMostEchoedScores = 1'000'000;

constexpr UnsupportedField kUnsupported[] = {
    {"tools", "[]"},
    {"tool_choice", R"("none")"},
};

void need_tokenizer(const JsonCursor& field, const EngineModel& model) {
  if (model.tokenizer) return;
  field.fail("needs a tokenizer, and the bundle has none, only ids", ErrorCode::kUnsupported);
}

CompletionPrompt text_prompt(const JsonCursor& prompt, const EngineModel& model) {
  need_tokenizer(prompt, model);
  return {prompt.path(), model.tokenizer->encode(prompt.string()), prompt.string()};
}

CompletionPrompt id_prompt(const JsonCursor& prompt, const EngineModel& model) {
  CompletionPrompt result{
      .field = prompt.path(), .ids = read_ids(prompt, model.vocab_size), .text = {}};
  if (!model.tokenizer) return result;
  try {
    result.text = replace_invalid_utf8(model.tokenizer->decode(result.ids, false));
  } catch (const Error& error) {  // A vocabulary may be larger than its tokenizer.
    prompt.fail(error.what());
  }
  return result;
}

CompletionPrompt one_prompt(const JsonCursor& prompt, const EngineModel& model) {
  if (prompt.json().string()) return text_prompt(prompt, model);
  if (prompt.json().array()) return id_prompt(prompt, model);
  prompt.fail(
      fmt::format("{}, expected a text or an array of token ids", prompt.json().kind_name()));
}

// Before any of them is looked at: there may be millions.
void check_number_of_answers(const JsonCursor& prompts, size_t num_prompts, int n) {
  if (num_prompts * static_cast<size_t>(n) <= kMostAnswers) return;
  prompts.fail(fmt::format("{} prompts with {} answers each, expected up to {} answers",
                           num_prompts, n, kMostAnswers));
}

// A text, ids, or an array of either; `n` answers to each.
std::vector<CompletionPrompt> read_prompts(const JsonCursor& prompt, const EngineModel& model,
                                           int n) {
  std::vector<CompletionPrompt> prompts;
  const Json::Array* const list = prompt.json().array();
  const bool is_one =
      list == nullptr || (!list->empty() && !list->front().string() && !list->front().array());
  check_number_of_answers(prompt, is_one ? 1 : list->size(), n);
  if (is_one) {
    prompts.push_back(one_prompt(prompt, model));
  } else {
    for (const JsonCursor& element : prompt.elements()) {
      prompts.push_back(one_prompt(element, model));
    }
  }
  if (prompts.empty()) prompt.fail("empty, expected at least one prompt");
  for (const CompletionPrompt& read : prompts) {
    if (!read.ids.empty()) continue;
    throw FieldError(ErrorCode::kInvalidArgument, read.field, "no tokens, expected at least one");
  }
  return prompts;
}

// Each token of a prompt that is echoed with its alternatives is some 30 bytes for each of them, in
// each answer.
void check_echo(const JsonCursor& prompt, const CompletionRequest& request) {
  size_t tokens = 0;
  for (const CompletionPrompt& read : request.prompts) tokens += read.ids.size();
  const auto answers = static_cast<size_t>(request.sampling.n);
  const size_t scores = tokens * answers * static_cast<size_t>(*request.logprobs + 1);
  if (scores <= kMostEchoedScores) return;
  prompt.fail(
      fmt::format("{} tokens, echoed {} times with {} logprobs each, expected up to {} "
                  "logprobs",
                  tokens, answers, *request.logprobs + 1, kMostEchoedScores));
}

}  // namespace

CompletionRequest read_completion_request(const JsonCursor& request, const EngineModel& model) {
  refuse_unsupported(request, kUnsupported);
  CompletionRequest result;
  result.sampling = read_sampling_fields(request, model.vocab_size);
  const JsonCursor prompt = required(request, "prompt");
  result.prompts = read_prompts(prompt, model, result.sampling.n);
  result.echo = optional_flag(request, "echo");
  result.logprobs = optional_int(request, "logprobs", 0, kMostLogprobs);
  if (result.logprobs) need_tokenizer(request.at("logprobs"), model);
  if (result.echo && result.logprobs) check_echo(prompt, result);
  const int max_tokens = optional_int(request, "max_tokens", 0, std::numeric_limits<int>::max())
                             .value_or(kDefaultMaxTokens);
  result.is_empty = max_tokens == 0;
  result.sampling.options.max_tokens = std::max(max_tokens, 1);
  result.sampling.options.logprobs = result.logprobs;
  result.stream = read_stream_fields(request);
  return result;
}

}  // namespace trtmc
