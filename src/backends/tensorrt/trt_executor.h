// A bundle on TensorRT: one sequence after the other, each with keys and values of its own.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/tensorrt/nvinfer_library.h"
#include "backends/tensorrt/plan_cache.h"

namespace trtmc::tensorrt {

// The device must have been found fit. Throws kUnsupported if no route takes the bundle, with the
// reasons, and for options of other backends; kInvalidArgument for too little KV memory.
std::unique_ptr<Executor> make_trt_executor(const NvInferLibrary& library, const Bundle& bundle,
                                            const ExecutorOptions& options, const PlanCache& cache);

}  // namespace trtmc::tensorrt
