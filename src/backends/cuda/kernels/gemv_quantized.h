// y = W x for a few tokens, W quantised. Bits are those of gemm and gemm_wgmma_quantized.
#pragma once

#include "backends/cuda/kernels/launch_plan.h"
#include "backends/cuda/kernels/product.h"

namespace trtmc::cuda {

// `plan`: of plan_gemv_quantized(); args.norm only where it was planned with one.
void launch_gemv_quantized(const ProductArgs& args, const QuantizedGemvPlan& plan,
                           const Launch& how);

// Once, before the first launch. `shared_bytes`: the most that a block of the device may have.
void prepare_gemv_quantized(int shared_bytes);

}  // namespace trtmc::cuda
