// What the CUDA runtime says, as sentences: why a device can't be used, and what a failed call
// means. Knows the runtime's codes by number, so that every sentence can be tested without CUDA.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace trtmc::cuda {

// Of cudaError_t, those that mean something to a user.
enum StatusCode : int {
  kSuccess = 0,
  kMemoryAllocation = 2,
  kInsufficientDriver = 35,
  kNoDevice = 100,
  kNoKernelImage = 209,
  kSystemDriverMismatch = 803,
};

inline constexpr int kNeededCudaVersion = 13000;  // As cudaDriverGetVersion() counts: 13.0.
inline constexpr int kOldestArchitecture = 80;    // Compute capability 8.0.

// What was found when the first device was asked for.
struct DeviceProbe {
  int status = kSuccess;         // Of the first call that failed.
  int driver_version = 0;        // 0: there is none.
  std::string name;              // Of the device.
  int architecture = 0;          // 90 for compute capability 9.0.
  int kernel_status = kSuccess;  // Of loading a kernel.
};

// Why the device can't be used, or nothing.
std::optional<std::string> refusal(const DeviceProbe& probe);

// A failed call: kExhausted if memory ran out, kUnsupported if the device can't run what was built,
// else kInternal: the device is lost to this process, and whoever uses it should say so. `name` and
// `text` are the runtime's own, `doing` what the call was for ("copying weights").
Error failure(int status, std::string_view name, std::string_view text, std::string_view doing);

}  // namespace trtmc::cuda
