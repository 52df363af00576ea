#include "backends/tensorrt/nvinfer_log.h"

#include "base/log.h"

namespace trtmc::tensorrt {

void NvInferLog::log(Severity severity, const char* message) noexcept {
  try {
    if (severity <= Severity::kERROR) {
      const std::lock_guard lock(mutex_);
      last_error_ = message;
    }
    if (severity <= Severity::kINFO) log_debug("TensorRT: {}", message);
  } catch (...) {
    return;  // Out of memory: a line is lost.
  }
}

std::string NvInferLog::last_error(const std::string& otherwise) const {
  const std::lock_guard lock(mutex_);
  return last_error_.empty() ? otherwise : last_error_;
}

void NvInferLog::forget_error() {
  const std::lock_guard lock(mutex_);
  last_error_.clear();
}

}  // namespace trtmc::tensorrt
