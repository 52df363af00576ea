#include "engine/generation.h"

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

}  // namespace trtmc
