// A bundle on a CUDA device.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/cuda/cuda_error.h"
#include "backends/cuda/cuda_ops.h"

namespace trtmc::cuda {

// The device must have been found fit. `grain` and `graphs` are for tests: operations one by one,
// and steps that are launched anew each time.
std::unique_ptr<Executor> make_cuda_executor(const Bundle& bundle, const ExecutorOptions& options,
                                             Grain grain = Grain::kBlock, bool graphs = true);

}  // namespace trtmc::cuda
