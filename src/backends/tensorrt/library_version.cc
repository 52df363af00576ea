#include "backends/tensorrt/library_version.h"

#include <fmt/format.h>

namespace trtmc::tensorrt {

std::string version_name(int number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::string library_name(int compiled_major) {
  return fmt::format("libnvinfer.so.{}", compiled_major);
}

std::optional<std::string> version_refusal(int number, TensorRtVersion compiled) {
  if (version_of(number).major != compiled.major) {
    return fmt::format("TensorRT {} is installed, but this build goes with TensorRT {}",
                       version_name(number), compiled.major);
  }
  if (version_of(number) < compiled) {
    return fmt::format("TensorRT {} is installed, but this build needs {}.{} at least",
                       version_name(number), compiled.major, compiled.minor);
  }
  return std::nullopt;
}

std::string missing_library(int compiled_major, std::string_view reason) {
  return fmt::format(
      "TensorRT {} is not installed: {}; NVIDIA's TensorRT SDK has it, and LD_LIBRARY_PATH says "
      "where",
      compiled_major, reason);
}

}  // namespace trtmc::tensorrt
