// check_cuda(call, "doing what"): throws what cuda_error.h makes of a call that failed.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/cuda_error.h"

namespace trtmc::cuda {

inline void check_cuda(cudaError_t status, std::string_view doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // Not again for the next call.
  throw failure(static_cast<int>(status), cudaGetErrorName(status), cudaGetErrorString(status),
                doing);
}

}  // namespace trtmc::cuda
