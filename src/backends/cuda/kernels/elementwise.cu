// A thread makes one value, each by itself.
#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/elementwise.h"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

__global__ void pairwise_kernel(const __grid_constant__ PairwiseArgs args) {
  release_successors();
  wait_for_predecessors();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= args.count) return;
  args.out[i] = args.operation == Pairwise::kAdd ? __fadd_rn(args.a[i], args.b[i])
                                                 : silu_times(args.a[i], args.b[i]);
}

// Eight sums side by side: shorter chains, and smaller errors than one long sum has.
__global__ void linear_kernel(const __grid_constant__ LinearArgs args) {
  release_successors();
  wait_for_predecessors();
  const int row = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const int token = static_cast<int>(blockIdx.y);
  if (row >= args.num_rows) return;
  const float* w =
      args.panels + int64_t{row / kPanelRows} * args.width * kPanelRows + row % kPanelRows;
  const float* x = args.x + token * args.x_stride;
  constexpr int kSums = 8;
  float sums[kSums] = {};
  for (int first = 0; first < args.width; first += kSums) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int k = first + i;
      if (k < args.width) sums[i] = __fmaf_rn(w[int64_t{k} * kPanelRows], x[k], sums[i]);
    }
  }
  float total = sums[0];
#pragma unroll
  for (int i = 1; i < kSums; ++i) total = __fadd_rn(total, sums[i]);
  args.out[token * args.out_stride + row] = total;
}

}  // namespace

void launch_pairwise(const PairwiseArgs& args, const Launch& how) {
  launch(pairwise_kernel, dim3(blocks_for(args.count)), dim3(kThreads), 0, how, args);
}

void launch_linear(const LinearArgs& args, const Launch& how) {
  launch(linear_kernel, dim3(blocks_for(args.num_rows), static_cast<unsigned>(args.num_tokens)),
         dim3(kThreads), 0, how, args);
}

}  // namespace trtmc::cuda
