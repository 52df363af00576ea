// What is asked of the engine, and what comes back, one token at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/token.h"
#include "model/sampling.h"

namespace trtmc {

std::string_view to_string(FinishReason reason);  // "stop", "length", "cancelled", "error"

// `error` gets the text or, where there is no memory for it, kOutOfMemory.
void set_error(std::string& error, std::string_view text) noexcept;

constexpr int kMostChoices = 128;

enum class Priority { kLow, kNormal, kHigh };

struct GenerationRequest {
  std::vector<TokenId> prompt;  // At least one token.
  SamplingParams sampling;
  int max_tokens = 0;  // 0: up to the context's end.
  // Answers, 1 to kMostChoices. They differ by their draws; the first is that of n = 1.
  int n = 1;
  Priority priority = Priority::kNormal;
  std::vector<TokenId> stop_ids;  // The bundle's and the request's own; ends the answer, not shown.
  std::vector<std::string> stop;  // Stop strings; nothing of them is shown.
  bool ignore_eos = false;        // stop_ids end nothing.
  bool keep_special = false;      // Tokens flagged special show in the text.
  std::optional<int> logprobs;    // How many alternatives to report per token; none: no logprobs.
  bool echo_logprobs = false;     // Score the prompt's tokens too.
};

struct TokenEvent {
  uint32_t choice = 0;
  TokenId token = -1;  // -1: no token, text held back or the end only.
  std::string text;    // Whole code points that are certain now; may be empty.
  float logprob = 0;   // If asked for, of the model's own distribution.
  std::vector<TokenLogprob> top;
  TokenId stop_token = -1;             // Of the last event, which has no token then: the stop token
                                       // that ended the choice, with its logprob and top.
  std::optional<FinishReason> finish;  // Set on the last event of a choice.
  std::string error;                   // Of kError, and what kind it is.
  ErrorCode error_code = ErrorCode::kInternal;
};

}  // namespace trtmc
