// A row is shared by some blocks; the last of them to end joins what the others found.
#include <cmath>

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/sample.h"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / static_cast<int>(kWarp);

__device__ __forceinline__ MostLikely joined(const MostLikely& a, const MostLikely& b) {
  const bool first = a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  MostLikely result = first ? a : b;
  const MostLikely& other = first ? b : a;
  // Both may be minus infinity.
  if (other.exp_sum > 0) {
    result.exp_sum += other.exp_sum * exp(static_cast<double>(other.logit) - result.logit);
  }
  return result;
}

__device__ __forceinline__ MostLikely shuffled(const MostLikely& of, int offset) {
  return {__shfl_xor_sync(kFullMask, of.token, offset),
          __shfl_xor_sync(kFullMask, of.logit, offset),
          __shfl_xor_sync(kFullMask, of.exp_sum, offset)};
}

// Of all threads of the block, to each thread of the first warp.
__device__ MostLikely joined_by_block(MostLikely own) {
  __shared__ MostLikely of_warps[kWarps];
  const unsigned lane = threadIdx.x % kWarp;
#pragma unroll
  for (int offset = 1; offset < static_cast<int>(kWarp); offset *= 2) {
    own = joined(own, shuffled(own, offset));
  }
  __syncthreads();
  if (lane == 0) of_warps[threadIdx.x / kWarp] = own;
  __syncthreads();
  own = of_warps[0];
  for (int i = 1; i < kWarps; ++i) own = joined(own, of_warps[i]);
  return own;
}

__global__ void __launch_bounds__(kThreads)
    most_likely_kernel(const __grid_constant__ MostLikelyArgs args) {
  release_successors();
  wait_for_predecessors();
  const int row = static_cast<int>(blockIdx.y);
  const float* logits = args.logits + row * args.stride;
  const int stride = kThreads * kSampleParts;
  const int first = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const MostLikely nothing{args.vocab_size - 1, -INFINITY, 0};
  MostLikely own = nothing;
  for (int i = first; i < args.vocab_size; i += stride) {
    const float logit = isnan(logits[i]) ? -INFINITY : logits[i];
    if (logit > own.logit || (logit == own.logit && i < own.token)) {
      own = {i, logit, 0};
    }
  }
  float sum = 0;
  for (int i = first; i < args.vocab_size && own.logit > -INFINITY; i += stride) {
    const float logit = logits[i];
    if (!isnan(logit)) sum += expf(logit - own.logit);
  }
  own.exp_sum = sum;
  own = joined_by_block(own);

  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    args.partial[row * kSampleParts + blockIdx.x] = own;
    __threadfence();
    is_last = atomicAdd(&args.counters[row], 1) == kSampleParts - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  own = threadIdx.x < kSampleParts ? args.partial[row * kSampleParts + threadIdx.x] : nothing;
  own = joined_by_block(own);
  if (threadIdx.x == 0) {
    args.out[row] = own;
    args.counters[row] = 0;
  }
}

}  // namespace

void launch_most_likely(const MostLikelyArgs& args, const Launch& how) {
  launch(most_likely_kernel, dim3(kSampleParts, static_cast<unsigned>(args.num_rows)),
         dim3(kThreads), 0, how, args);
}

}  // namespace trtmc::cuda
