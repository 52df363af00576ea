// y = W x for many tokens, on the tensor cores: prefill and large batches. The same bits as gemv.
#pragma once

#include "backends/cuda/kernels/product.h"

namespace trtmc::cuda {

// `args.norm` is null: tokens come as terms.
void launch_gemm(const ProductArgs& args, const Launch& how);

// Lets the kernels use the device's shared memory; once, before the first launch.
void prepare_gemm();

}  // namespace trtmc::cuda
