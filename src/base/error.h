// The one way trtmc fails: an Error says what went wrong in a sentence, and its code says what the
// caller can do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace trtmc {

enum class ErrorCode {
  kInvalidArgument,  // Ask differently.
  kNotFound,         // The file or the name does not exist.
  kCorrupt,          // The bytes are damaged or not what they claim to be.
  kUnsupported,      // Well-formed, but trtmc can't do it.
  kExhausted,        // No memory, disk or queue space is left.
  kInternal,         // A bug of ours.
};

// The exit status of a command that ends with `code`.
int exit_status(ErrorCode code);

class Error : public std::runtime_error {
 public:
  // `message` is a sentence without a full stop that names the thing, what it is and what was
  // expected. `hint`, if any, says what to do.
  Error(ErrorCode code, const std::string& message, std::string hint = {})
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

  ErrorCode code() const { return code_; }
  const std::string& hint() const { return hint_; }

  // The same error as seen from a layer that knows more: "config.json: <message>".
  Error within(std::string_view context) const {
    return {code_, std::string(context) + ": " + what(), hint_};
  }

 private:
  ErrorCode code_;
  std::string hint_;
};

// Runs `body`; an Error that leaves it gets `context` in front of its message.
template <typename Body>
decltype(auto) with_context(std::string_view context, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    throw error.within(context);
  }
}

}  // namespace trtmc
