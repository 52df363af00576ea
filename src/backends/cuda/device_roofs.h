// The device's own speeds, for a figure to stand beside.
#pragma once

#include <cstdint>

#include "backends/backend.h"

struct CUstream_st;

namespace trtmc::cuda {

// `memory`: something to read that is not zeros. Throws as check_cuda().
DeviceRoofs measure_device_roofs(const void* memory, uint64_t bytes, int multiprocessors,
                                 CUstream_st* stream);

}  // namespace trtmc::cuda
