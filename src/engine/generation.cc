#include "engine/generation.h"

#include <new>

#include "base/check.h"

namespace trtmc {

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  TRTMC_CHECK(false, "no finish reason");
}

void set_error(std::string& error, std::string_view text) noexcept {
  try {
    error = text;
  } catch (const std::bad_alloc&) {
    error = kOutOfMemory;
  }
}

}  // namespace trtmc
