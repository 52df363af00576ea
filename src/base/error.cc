#include "base/error.h"

namespace trtmc {

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

}  // namespace trtmc
