// What compute capability 9.0 has beyond the others: clusters, and products that four warps make
// together (wgmma).
// PTX ISA 8.0, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
#pragma once

#include "backends/cuda/kernels/barrier.cuh"

// wgmma exists in code compiled for exactly this architecture.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TRTMC_HAS_WGMMA 1
#endif

namespace trtmc::cuda {

#ifdef TRTMC_HAS_WGMMA

// Between writes of this thread to shared memory and products that read them.
__device__ __forceinline__ void fence_for_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- Clusters

__device__ __forceinline__ int cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
// All threads of all blocks of the cluster; what was written to shared memory before is seen after.
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
// From the shared memory of another block of the cluster.
__device__ __forceinline__ float4 load_remote(const float* from, int rank) {
  float4 v;
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [remote];\n}\n"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "r"(shared_address(from)), "r"(rank)
      : "memory");
  return v;
}

// ---- Some threads of a block: barriers by number, 1 to 15

// Until kThreads have come.
template <int kThreads>
__device__ __forceinline__ void sync_threads_at(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
// Comes, and does not wait.
template <int kThreads>
__device__ __forceinline__ void arrive_at_threads(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}

// ---- Registers of a warp group

template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// ---- Products of a warp group: d += a b, a of 64 x 16 in the registers of its four warps (each
// as mma.sync m16n8k16 has them), b of 16 x kColumns in shared memory.

__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until at most kPending of the groups committed are at work.
template <int kPending>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// After the wait for their products: so that the compiler reads `sums` no earlier.
template <int kCount>
__device__ __forceinline__ void receive(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Where b lies: 8 columns of 16 bytes (8 k) side by side are 128 bytes; `k_distance` bytes to the
// other 8 k, `column_distance` to the next 8 columns. No swizzle.
__device__ __forceinline__ uint64_t matrix_at(const void* at, int k_distance, int column_distance) {
  const auto field = [](uint32_t bytes) { return static_cast<uint64_t>((bytes & 0x3ffffU) >> 4); };
  return field(shared_address(at)) | field(static_cast<uint32_t>(k_distance)) << 16 |
         field(static_cast<uint32_t>(column_distance)) << 32;
}

// `adds` false: d = a b. d[4 i + j]: of columns 8 i.. as multiply_add() in device.cuh has them.
// kTransposed: it is 8 k of 16 bytes (8 columns) that lie side by side.
template <int kColumns>
struct Wgmma;

#define TRTMC_EIGHT(d, i)                                                                     \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])

template <>
struct Wgmma<32> {
  template <bool kTransposed = false>
  static __device__ __forceinline__ void multiply_add(float (&d)[16], const uint4& a, uint64_t b,
                                                      bool adds) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
        "{%16,%17,%18,%19}, %20, p, 1, 1, %22;\n}\n"
        : TRTMC_EIGHT(d, 0), TRTMC_EIGHT(d, 8)
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b), "r"(static_cast<int>(adds)),
          "n"(kTransposed ? 1 : 0));
  }
};

template <>
struct Wgmma<64> {
  template <bool kTransposed = false>
  static __device__ __forceinline__ void multiply_add(float (&d)[32], const uint4& a, uint64_t b,
                                                      bool adds) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
        "{%32,%33,%34,%35}, %36, p, 1, 1, %38;\n}\n"
        : TRTMC_EIGHT(d, 0), TRTMC_EIGHT(d, 8), TRTMC_EIGHT(d, 16), TRTMC_EIGHT(d, 24)
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b), "r"(static_cast<int>(adds)),
          "n"(kTransposed ? 1 : 0));
  }
};

template <>
struct Wgmma<128> {
  template <bool kTransposed = false>
  static __device__ __forceinline__ void multiply_add(float (&d)[64], const uint4& a, uint64_t b,
                                                      bool adds) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
        "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
        "{%64,%65,%66,%67}, %68, p, 1, 1, %70;\n}\n"
        : TRTMC_EIGHT(d, 0), TRTMC_EIGHT(d, 8), TRTMC_EIGHT(d, 16), TRTMC_EIGHT(d, 24),
          TRTMC_EIGHT(d, 32), TRTMC_EIGHT(d, 40), TRTMC_EIGHT(d, 48), TRTMC_EIGHT(d, 56)
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b), "r"(static_cast<int>(adds)),
          "n"(kTransposed ? 1 : 0));
  }
};

#undef TRTMC_EIGHT

#endif

}  // namespace trtmc::cuda
