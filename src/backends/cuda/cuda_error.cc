#include "backends/cuda/cuda_error.h"

#include <fmt/format.h>

namespace trtmc::cuda {
namespace {

std::string version_name(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string capability_name(int architecture) {
  return fmt::format("{}.{}", architecture / 10, architecture % 10);
}

}  // namespace

std::optional<std::string> refusal(const DeviceProbe& probe) {
  if (probe.driver_version == 0) return "no NVIDIA driver is installed";
  if (probe.driver_version < kNeededCudaVersion || probe.status == kInsufficientDriver) {
    return fmt::format("the NVIDIA driver is for CUDA {}, but at least {} is needed",
                       version_name(probe.driver_version), version_name(kNeededCudaVersion));
  }
  if (probe.status == kNoDevice) return "there is no CUDA device";
  if (probe.status == kSystemDriverMismatch) {
    return "the NVIDIA driver and its kernel module are of different versions";
  }
  if (probe.status != kSuccess) {
    return fmt::format("the CUDA device can't be used (CUDA error {})", probe.status);
  }
  if (probe.architecture < kOldestArchitecture) {
    return fmt::format("{} has compute capability {}, but at least {} is needed", probe.name,
                       capability_name(probe.architecture), capability_name(kOldestArchitecture));
  }
  if (probe.kernel_status != kSuccess) {
    return fmt::format("this build has no code for {}, compute capability {}", probe.name,
                       capability_name(probe.architecture));
  }
  return std::nullopt;
}

Error failure(int status, std::string_view name, std::string_view text, std::string_view doing) {
  const std::string what = fmt::format("{}: CUDA error {}, {} ({})", doing, status, name, text);
  if (status == kMemoryAllocation) {
    return {ErrorCode::kExhausted, fmt::format("{}: the GPU has too little free memory", doing),
            "ask for a shorter context or less KV memory"};
  }
  if (status == kNoKernelImage || status == kInsufficientDriver || status == kNoDevice) {
    return {ErrorCode::kUnsupported, what};
  }
  return {ErrorCode::kInternal, "the GPU is lost to this process: " + what,
          "a new process can use it again if it still works"};
}

}  // namespace trtmc::cuda
