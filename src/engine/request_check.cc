#include "engine/request_check.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "base/utf8.h"

namespace trtmc {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace

void check_request(const GenerationRequest& request, const EngineModel& model, int longest) {
  require(!request.prompt.empty(), "prompt: no tokens, expected at least one");
  check_ids(request.prompt, "prompt", model.vocab_size);
  check_ids(request.stop_ids, "stop_ids", model.vocab_size);
  validate(request.sampling);
  for (const auto& [token, bias] : request.sampling.logit_bias) {
    check_ids(std::span(&token, 1), "logit_bias", model.vocab_size);
  }
  require(request.prompt.size() < static_cast<size_t>(longest),
          fmt::format("prompt: {} tokens leave no room for an answer in a context of {}",
                      request.prompt.size(), longest));
  require(request.max_tokens >= 0,
          fmt::format("max_tokens: {}, expected a number of at least 0", request.max_tokens));
  require(request.n >= 1 && request.n <= kMostChoices,
          fmt::format("n: {}, expected a number from 1 to {}", request.n, kMostChoices));
  const int logprobs = request.logprobs.value_or(0);
  require(logprobs >= 0 && logprobs <= model.vocab_size,
          fmt::format("logprobs: {}, expected a number from 0 to the vocabulary's {}", logprobs,
                      model.vocab_size));
  for (const std::string& stop : request.stop) {
    require(!stop.empty(), "stop: an empty string, expected text");
    require(!find_invalid_utf8(stop), "stop: not UTF-8, expected text");
  }
  if (!request.stop.empty() && !model.tokenizer) {
    throw Error(ErrorCode::kUnsupported,
                "stop: strings need a tokenizer, and the bundle has none, only ids");
  }
}

}  // namespace trtmc
