// gemm on devices of compute capability 9.0, at several times the speed; where wgmma adds like
// mma.sync, so does this. Elsewhere it can't be launched.
#pragma once

#include "backends/cuda/kernels/launch_plan.h"
#include "backends/cuda/kernels/product.h"

namespace trtmc::cuda {

// `args.norm` is null: tokens come as terms.
void launch_gemm_wgmma(const ProductArgs& args, const WgmmaPlan& plan, const Launch& how);

// Of quantised weights; `plan` of plan_wgmma_quantized().
void launch_gemm_wgmma_quantized(const ProductArgs& args, const WgmmaPlan& plan, const Launch& how);

// Once, before the first launch.
void prepare_gemm_wgmma();
void prepare_gemm_wgmma_quantized();

}  // namespace trtmc::cuda
