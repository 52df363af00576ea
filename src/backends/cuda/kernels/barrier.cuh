// Barriers in shared memory that threads and copies arrive at (mbarrier), and copies that a single
// thread orders. PTX ISA 8.0, "Parallel Synchronization and Communication Instructions: mbarrier".
//
// Phases end in turn: wait_for(b, 0) until the first has ended, wait_for(b, 1) until the second,
// and so on; wait_for(b, 1) of a fresh barrier does not wait.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace trtmc::cuda {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void init_barrier(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}
// After init_barrier, before anybody else uses the barriers.
__device__ __forceinline__ void fence_barriers() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
__device__ __forceinline__ void arrive(uint64_t* barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}\n" ::"r"(
                   shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void wait_for(uint64_t* barrier, int parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}\n" ::"r"(
          shared_address(barrier)),
      "r"(parity)
      : "memory");
#else
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n@!done bra again;\n}\n" ::"r"(
          shared_address(barrier)),
      "r"(parity)
      : "memory");
#endif
}

// In a ring of stages with barriers of their own: whose turn it is, and the parity of its phase.
template <int kStages>
struct RingPlace {
  int stage = 0;
  int parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

#if __CUDA_ARCH__ >= 900

// Arrives, and the phase lasts until so many bytes more have come.
__device__ __forceinline__ void arrive_expecting(uint64_t* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
// To shared memory; `barrier` counts the bytes. All multiples of 16.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, int bytes,
                                          uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

#endif

}  // namespace trtmc::cuda
