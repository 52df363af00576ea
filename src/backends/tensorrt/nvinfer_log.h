// TensorRT's messages in our log, and the last complaint to put into a failure.
#pragma once

#include <NvInferRuntime.h>

#include <mutex>
#include <string>

namespace trtmc::tensorrt {

class NvInferLog final : public nvinfer1::ILogger {
 public:
  // From any thread. All but verbose lines is logged as debug lines, since they are written for who
  // builds TensorRT; the last error is kept as well.
  void log(Severity severity, const char* message) noexcept override;
  // The last error since the last forget_error(), or `otherwise`.
  std::string last_error(const std::string& otherwise) const;
  // Before something is tried whose failure must not be explained by an earlier one's.
  void forget_error();

 private:
  mutable std::mutex mutex_;
  std::string last_error_;
};

}  // namespace trtmc::tensorrt
