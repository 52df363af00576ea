// What a step runs on, on the device.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/cuda_kv.h"
#include "backends/cuda/cuda_weights.h"
#include "backends/cuda/kernels/launch_plan.h"

namespace trtmc::cuda {

enum class Grain { kBlock, kOperation };

// Borrowed.
struct CudaOpsParts {
  const DecoderSpec& spec;
  const CudaWeights& weights;
  const CudaKvCache& cache;
  const CudaRopeTable& rope;
  Limits limits;
  DeviceLimits device;
  int num_terms;  // Of activations in a product: 1 or 3.
  Grain grain;
  const HiddenStateProbe& probe;
};

}  // namespace trtmc::cuda
