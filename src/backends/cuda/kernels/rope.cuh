// The arithmetic of a rotation and of a stored key, for every kernel that does either.
#pragma once

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/kv_cache.h"

namespace trtmc::cuda {

// (a, b) turned by the angle of `place`: cos and sin.
__device__ __forceinline__ float2 rotated(float a, float b, float2 place) {
  return make_float2(__fsub_rn(__fmul_rn(a, place.x), __fmul_rn(b, place.y)),
                     __fadd_rn(__fmul_rn(b, place.x), __fmul_rn(a, place.y)));
}

// Component `d` of a head that rotates over its first 2 * half components. table: of its position.
__device__ __forceinline__ float rotated_component(const float* head, int d, int half,
                                                   const float2* table) {
  if (d >= 2 * half) return head[d];
  if (d < half) return rotated(head[d], head[d + half], table[d]).x;
  return rotated(head[d - half], head[d], table[d - half]).y;
}

__device__ __forceinline__ void store_kv(const KvCacheView& cache, int64_t element, float value) {
  if (cache.is_bf16) {
    static_cast<__nv_bfloat16*>(cache.memory)[element] = __float2bfloat16_rn(value);
  } else {
    static_cast<float*>(cache.memory)[element] = value;
  }
}

}  // namespace trtmc::cuda
