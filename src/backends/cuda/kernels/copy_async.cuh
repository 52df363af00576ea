// Copies to shared memory that run beside the arithmetic.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace trtmc::cuda {

// 16 bytes; zeros if they are not wanted, `from` being any address then.
__device__ __forceinline__ void copy_async(uint4* to, const void* from, bool wanted) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = wanted ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void copy_async(uint4* to, const void* from) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most kPending of the groups committed by this thread are on their way.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace trtmc::cuda
