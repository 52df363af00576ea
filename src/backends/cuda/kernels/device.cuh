// What several kernels share on the device.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/terms.h"

namespace trtmc::cuda {

constexpr unsigned kWarp = 32;
constexpr unsigned kFullMask = 0xffffffffU;

// ---- Launching

// Lets the next kernel begin: its blocks come where there is room, and wait in their turn.
__device__ __forceinline__ void release_successors() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until the kernels in front have ended and their writes are seen.
__device__ __forceinline__ void wait_for_predecessors() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// `cluster`: how many blocks along x make a cluster.
template <typename Args>
void launch_clusters(void (*kernel)(Args), dim3 grid, dim3 block, size_t shared_bytes,
                     unsigned cluster, const Launch& how, const Args& args) {
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (how.overlaps) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {cluster, 1, 1};
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = how.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  cudaLaunchKernelEx(&config, kernel, args);
}

template <typename Args>
void launch(void (*kernel)(Args), dim3 grid, dim3 block, size_t shared_bytes, const Launch& how,
            const Args& args) {
  launch_clusters(kernel, grid, block, shared_bytes, 1, how, args);
}

// Kernels of few tokens, which begin beside each other, divide a multiprocessor's memory alike into
// first-level cache and shared memory: in halves, or all of it shared. It is divided anew only when
// it is idle.
inline constexpr int kHalfShared = 50, kAllShared = 100;  // Percent.
template <typename Args>
void divide_memory(void (*kernel)(Args), int percent_shared) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, percent_shared);
}

// ---- Some threads of a block: by a barrier other than that of __syncthreads, whose number is 0.

template <int kBarrier>
__device__ __forceinline__ void sync_threads_of(int threads) {
  asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "r"(threads) : "memory");
}

// ---- Numbers. Products and sums are spelled out where the compiler could choose to fuse them, so
// that two kernels that compute the same thing compute the same bits.

// The words of `kTerms` terms of two neighbouring values.
template <int kTerms>
__device__ __forceinline__ void split(float a, float b, uint32_t (&words)[kTerms]) {
#pragma unroll
  for (int i = 0; i < kTerms; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
    words[i] = *reinterpret_cast<const uint32_t*>(&pair);
    if (i + 1 == kTerms) break;
    // What rounds to infinity is its own only term: infinity minus infinity would make it a NaN.
    a = isinf(__low2float(pair)) ? 0.0F : __fsub_rn(a, __low2float(pair));
    b = isinf(__high2float(pair)) ? 0.0F : __fsub_rn(b, __high2float(pair));
  }
}

template <int kTerms>
__device__ __forceinline__ int64_t term_word(const TermBuffer& of, int step, int term, int token,
                                             int pair) {
  const int64_t half = int64_t{(((token >> of.block_bits) * of.steps + step) * kTerms + term) * 2 +
                               pair / kHalfWords};
  return ((half << of.block_bits) + (token & (of.block - 1))) * kHalfWords + pair % kHalfWords;
}

template <int kTerms>
__device__ __forceinline__ void store_terms(const TermBuffer& to, int token, int column, float a,
                                            float b) {
  uint32_t words[kTerms];
  split<kTerms>(a, b, words);
#pragma unroll
  for (int i = 0; i < kTerms; ++i) {
    to.words[term_word<kTerms>(to, column / kStepColumns, i, token, column % kStepColumns / 2)] =
        words[i];
  }
}

__device__ __forceinline__ float silu_times(float gate, float up) {
  return __fmul_rn(__fdividef(gate, __fadd_rn(1.0F, expf(-gate))), up);
}

__device__ __forceinline__ float normed(float x, float inverse, float weight) {
  return __fmul_rn(weight, __fmul_rn(x, inverse));
}

__device__ __forceinline__ float bf16_low(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float bf16_high(uint32_t pair) {
  return __uint_as_float(pair & 0xffff0000U);
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = __fadd_rn(value, __shfl_xor_sync(kFullMask, value, offset));
  }
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kFullMask, value, offset));
  }
  return value;
}

// The sum of squares of one part of a row, by a warp; every lane gets it. The order depends on
// nothing but the row.
__device__ __forceinline__ float part_squares(const float* x, int width, int part, int lane) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kNormColumns / static_cast<int>(kWarp); ++i) {
    const int column = part * kNormColumns + i * static_cast<int>(kWarp) + lane;
    const float value = column < width ? x[column] : 0;
    sum = __fmaf_rn(value, value, sum);
  }
  return warp_sum(sum);
}

// 1 / sqrt(mean(x^2) + eps) from those.
__device__ __forceinline__ float inverse_rms(const float* squares, int width, float eps) {
  float total = squares[0];
  for (int i = 1; i < num_norm_parts(width); ++i) total = __fadd_rn(total, squares[i]);
  return __fdiv_rn(1.0F, __fsqrt_rn(__fadd_rn(__fdiv_rn(total, static_cast<float>(width)), eps)));
}

// ---- The tensor core: d += a b for a of 16 x 16 weights (a lane's four words) and b of 16 columns
// of 8 tokens. Lane 4 g + t gets rows 2 g and 2 g + 1 of the panel, tokens 2 t and 2 t + 1:
// d[0], d[1] are row 2 g; d[2], d[3] row 2 g + 1.
__device__ __forceinline__ void multiply_add(float (&d)[4], const uint4& a, uint2 b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

// d = a b. This one and that below may change places with others.
__device__ __forceinline__ void multiply(float (&d)[4], const uint4& a, uint2 b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%10,%10,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y), "f"(0.0F));
}
// d += a b.
__device__ __forceinline__ void multiply_more(float (&d)[4], const uint4& a, uint2 b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

// The sums of one tile over a segment, as terms.h says. Of one term: `total` alone.
template <int kTerms>
struct TermSums {
  float total[4] = {};
  float parts[kTerms == 1 ? 1 : kTerms][4] = {};

  __device__ __forceinline__ void add(int term, const uint4& a, uint2 b) {
    if constexpr (kTerms == 1) {
      multiply_add(total, a, b);
    } else {
      multiply_add(parts[term], a, b);
    }
  }
  // After each step; `step` counts from the segment's first.
  __device__ __forceinline__ void end_step(int step) {
    if constexpr (kTerms > 1) {
      if (step % kExactSteps == kExactSteps - 1) promote();
    }
  }
  __device__ __forceinline__ void end_segment() {
    if constexpr (kTerms > 1) {
      promote();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        total[i] = __fadd_rn(total[i], __fadd_rn(parts[1][i], parts[kTerms - 1][i]));
        parts[1][i] = 0;
        parts[kTerms - 1][i] = 0;
      }
    }
  }

 private:
  __device__ __forceinline__ void promote() {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      total[i] = __fadd_rn(total[i], parts[0][i]);
      parts[0][i] = 0;
    }
  }
};

// 16 bytes that are read once: they need not stay in the first-level cache.
__device__ __forceinline__ uint4 load_streamed(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// Word `pair` (0 to 7) of a step of row `row` of a tile, as the instruction takes its left side.
__device__ __forceinline__ uint32_t* fragment_word(uint4* lanes, int row, int pair) {
  return reinterpret_cast<uint32_t*>(lanes + row % 8 * 4 + pair % 4) + row / 8 + pair / 4 * 2;
}

// Four 8 x 8 matrices of bf16, transposed: the right sides of two products of 16 positions.
__device__ __forceinline__ void load_transposed(const __nv_bfloat16* row, uint2& first,
                                                uint2& second) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(first.x), "=r"(first.y), "=r"(second.x), "=r"(second.y)
               : "r"(address));
}

}  // namespace trtmc::cuda
