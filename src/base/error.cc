#include "base/error.h"

#include <exception>
#include <new>

namespace trtmc {

Error::Error(ErrorCode code, const std::string& message, std::string hint)
    : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

Error::~Error() = default;

Error Error::within(std::string_view context) const {
  return {code_, std::string(context) + ": " + what(), hint_};
}

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 2;
    case ErrorCode::kNotFound:
      return 3;
    case ErrorCode::kCorrupt:
      return 4;
    case ErrorCode::kUnsupported:
      return 5;
    case ErrorCode::kExhausted:
      return 6;
    case ErrorCode::kInternal:
      return 70;
  }
  return 70;
}

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kExhausted, "out of memory"};
  } catch (const std::exception& exception) {
    return {ErrorCode::kInternal, std::string("a bug of trtmc: ") + exception.what(),
            "please report it with what led here"};
  } catch (...) {
    return {ErrorCode::kInternal, "a bug of trtmc: something that is no exception was thrown"};
  }
}

}  // namespace trtmc
