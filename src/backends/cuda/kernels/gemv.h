// y = W x for up to 16 tokens: what decoding is made of. Bound by the reading of W.
#pragma once

#include "backends/cuda/kernels/launch_plan.h"
#include "backends/cuda/kernels/product.h"

namespace trtmc::cuda {

// `plan` is plan_gemv()'s for these arguments.
void launch_gemv(const ProductArgs& args, const GemvPlan& plan, const Launch& how);

// Lets the kernels use the device's shared memory; once, before the first launch.
void prepare_gemv(int shared_bytes);

}  // namespace trtmc::cuda
