// TensorRT's messages in our log, and the last complaint to put into a failure.
#pragma once

#include <NvInferRuntime.h>

#include <mutex>
#include <string>

namespace trtmc::tensorrt {

class NvInferLog final : public nvinfer1::ILogger {
 public:
  // From any thread. Errors are kept, the rest is logged: warnings and below as debug lines, since
  // they are written for who builds TensorRT.
  void log(Severity severity, const char* message) noexcept override;
  // The last error, or `otherwise`.
  std::string last_error(const std::string& otherwise) const;

 private:
  mutable std::mutex mutex_;
  std::string last_error_;
};

}  // namespace trtmc::tensorrt
