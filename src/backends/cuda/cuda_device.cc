#include "backends/cuda/cuda_device.h"

namespace trtmc::cuda {

DeviceProbe probe_device() {
  DeviceProbe probe;
  cudaDriverGetVersion(&probe.driver_version);
  int count = 0;
  probe.status = static_cast<int>(cudaGetDeviceCount(&count));
  if (probe.status == kSuccess && count == 0) probe.status = kNoDevice;
  cudaDeviceProp properties{};
  if (probe.status == kSuccess) {
    probe.status = static_cast<int>(cudaGetDeviceProperties(&properties, 0));
  }
  cudaGetLastError();  // Not again for the next call.
  if (probe.status != kSuccess) return probe;
  probe.name = properties.name;
  probe.architecture = properties.major * 10 + properties.minor;
  return probe;
}

}  // namespace trtmc::cuda
