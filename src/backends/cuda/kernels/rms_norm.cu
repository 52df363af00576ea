// One block a row: a row is a few KB, so the second pass stays in the first-level cache.
#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/rms_norm.h"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float value_at(const RowsArgs& args, const float* x, int column,
                                          float inverse) {
  if (column >= args.width) return 0;
  return args.norm == nullptr ? x[column] : normed(x[column], inverse, args.norm[column]);
}

__global__ void __launch_bounds__(kThreads) rows_kernel(const __grid_constant__ RowsArgs args) {
  __shared__ float squares[kMostNormParts];
  release_successors();
  wait_for_predecessors();
  const int row = static_cast<int>(blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  const float* x = args.x + (args.rows == nullptr ? row : args.rows[row]) * args.x_stride;
  float inverse = 1;
  if (args.norm != nullptr) {
    constexpr int kWarpThreads = static_cast<int>(kWarp);
    for (int i = thread / kWarpThreads; i < num_norm_parts(args.width);
         i += kThreads / kWarpThreads) {
      squares[i] = part_squares(x, args.width, i, thread % kWarpThreads);
    }
    __syncthreads();
    inverse = inverse_rms(squares, args.width, args.eps);
  }
  if (args.out != nullptr) {
    for (int i = thread; i < args.width; i += kThreads) {
      args.out[row * args.out_stride + i] = value_at(args, x, i, inverse);
    }
    return;
  }
  // Zeros up to the end of the last step.
  const int pairs = num_steps(args.width) * kStepColumns / 2;
  for (int i = thread; i < pairs; i += kThreads) {
    const float a = value_at(args, x, 2 * i, inverse);
    const float b = value_at(args, x, 2 * i + 1, inverse);
    if (args.num_terms == 1) {
      store_terms<1>(args.out_terms, row, 2 * i, a, b);
    } else {
      store_terms<3>(args.out_terms, row, 2 * i, a, b);
    }
  }
}

}  // namespace

void launch_rows(const RowsArgs& args, const Launch& how) {
  launch(rows_kernel, dim3(static_cast<unsigned>(args.num_rows)), dim3(kThreads), 0, how, args);
}

}  // namespace trtmc::cuda
