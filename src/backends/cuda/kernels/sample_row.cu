// Sampling, for all rows of a batch at once: a pass is one launch, kRowParts blocks a row. What
// they compute is in sample_steps.h; here are the threads.
//
// A row of 128k floats is 16 KB a block, which stay in the second-level cache from pass to pass.
#include <cmath>

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/sample_row.h"
#include "backends/cuda/kernels/sample_steps.h"

namespace trtmc::cuda {
namespace {

class DeviceBlock {
 public:
  template <typename F>
  __device__ __forceinline__ void each(F f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  template <typename T>
  __device__ __forceinline__ T load(const T* from) const {
    return __ldcg(from);
  }
  __device__ __forceinline__ uint64_t load(const uint64_t* from) const {
    return __ldcg(reinterpret_cast<const unsigned long long*>(from));
  }
  __device__ __forceinline__ void add(uint64_t* to, uint64_t amount) {
    atomicAdd(reinterpret_cast<unsigned long long*>(to), amount);
  }
  __device__ __forceinline__ void max(uint64_t* to, uint64_t value) {
    atomicMax(reinterpret_cast<unsigned long long*>(to), value);
  }
  __device__ __forceinline__ uint32_t add_shared(uint32_t* to, uint32_t amount) {
    return atomicAdd(to, amount);
  }
  __device__ __forceinline__ int32_t take_slot(int32_t* next) { return atomicAdd(next, 1); }

  __device__ bool is_last(int32_t* arrived) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      last = atomicAdd(arrived, 1) == kRowParts - 1;
      if (last) *arrived = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
  }
};

__global__ void __launch_bounds__(kSampleThreads)
    sample_kernel(const __grid_constant__ SamplePassArgs args) {
  __shared__ SampleShared shared;
  release_successors();
  wait_for_predecessors();
  DeviceBlock block;
  run_sample_pass(block, shared, args, static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.x));
}

}  // namespace

void launch_sample_pass(const SamplePassArgs& args, const Launch& how) {
  launch(sample_kernel, dim3(kRowParts, static_cast<unsigned>(args.num_jobs)), dim3(kSampleThreads),
         0, how, args);
}

}  // namespace trtmc::cuda
