// The plain values that a program exchanges with trtmc, and the one exception that it throws.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trtmc/version.h"

namespace trtmc {

// The number of a token in a model's vocabulary, from 0.
using TokenId = std::int32_t;

enum class ErrorCode {
  kInvalidArgument,  // Ask differently.
  kNotFound,         // The file or the name does not exist.
  kCorrupt,          // The bytes are damaged or not what they claim to be.
  kUnsupported,      // Well-formed, but trtmc can't do it.
  kExhausted,        // No memory, disk or queue space is left.
  kInternal,         // A bug of trtmc.
};

// The one way in which trtmc fails: a sentence that says what went wrong, and a code that says what
// the caller can do about it.
class TRTMC_API Error : public std::runtime_error {
 public:
  // `message` is a sentence without a full stop that names the thing, what it is and what was
  // expected. `hint`, if any, says what to do.
  Error(ErrorCode code, const std::string& message, std::string hint = {});
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;

  // what() is the message.
  ErrorCode code() const { return code_; }
  const std::string& hint() const { return hint_; }

  // The same error as seen from a layer that knows more: "config.json: <message>".
  Error within(std::string_view context) const;

 private:
  ErrorCode code_;
  std::string hint_;
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// A tool that the model asks for.
struct ToolCall {
  std::string name;
  std::string arguments;  // The model's own JSON text, also if it wrote it as a string; "{}" if it
                          // gave none or null.
  bool operator==(const ToolCall&) const = default;
};

struct TokenLogprob {
  TokenId token;
  float logprob;  // Natural logarithm.
};

// Why an answer ended.
enum class FinishReason {
  kStop,       // At a stop token or a stop string.
  kLength,     // At the limit of tokens, or at the end of the context.
  kCancelled,  // By the caller.
  kError,      // By a failure, which the library throws: no answer of its ends so.
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;  // Of all choices, without stop ids.
  int cached_tokens = 0;      // Of the prompt, taken over from earlier requests.
};

}  // namespace trtmc
