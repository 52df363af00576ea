// The arithmetic of a rotation and of a stored key, for every kernel that does either.
#pragma once

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/kv_cache.h"
#include "backends/kv_fp8.h"

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

// To a component of a cache that has no scales.
template <KvType kType>
__device__ __forceinline__ void store_kv(std::byte* at, float value) {
  if constexpr (kType == KvType::kBF16) {
    *reinterpret_cast<__nv_bfloat16*>(at) = __float2bfloat16_rn(value);
  } else {
    *reinterpret_cast<float*>(at) = value;
  }
}

// ---- fp8: a warp has a head, a lane the components 32 i + lane.

constexpr int kHeadParts = kMostHeadDim / static_cast<int>(kWarp);

// Stores a key or value to `head` at a position of its block, the components behind its width being
// 0. `sink(d, value)` gets what is kept of each.
template <typename Sink>
__device__ __forceinline__ void store_fp8(const KvCacheView& cache, std::byte* head, int position,
                                          int head_dim, int lane, const float (&x)[kHeadParts],
                                          Sink sink) {
  uint32_t most = 0;
#pragma unroll
  for (const float value : x) most = max(most, __float_as_uint(value) & ~kFloatSign);
  most = __reduce_max_sync(kFullMask, most);
  const uint32_t scale = fp8_scale_bits(most);
  const uint32_t inverse = fp8_inverse_bits(scale);
#pragma unroll
  for (int i = 0; i < kHeadParts; ++i) {
    const int d = i * static_cast<int>(kWarp) + lane;
    if (d >= head_dim) break;
    const float steps = __fmul_rn(x[i], __uint_as_float(inverse));
    const uint8_t code = inverse == 0 ? uint8_t{0} : fp8_code(__float_as_uint(steps));
    *reinterpret_cast<uint8_t*>(head + cache.place<KvType::kFp8>(position, d)) = code;
    sink(d, __fmul_rn(fp8_value(code), __uint_as_float(scale)));
  }
  if (lane == 0) {
    *reinterpret_cast<float*>(head + cache.scale_place(position)) = __uint_as_float(scale);
  }
}

// A run of 16 codes as bf16, exactly.
__device__ __forceinline__ void widen_fp8(const uint4& codes, float scale, uint4& first,
                                          uint4& second) {
  const __nv_bfloat162 unit = __float2bfloat162_rn(kFp8Unit);
  const __nv_bfloat162 factor = __float2bfloat162_rn(scale);
  const auto pair = [&](uint32_t word, uint32_t selector) {
    const uint32_t bits = fp8_as_bf16_pair(__byte_perm(word, 0, selector));
    // One by one: both together may be beyond what is finite.
    const __nv_bfloat162 value =
        __hmul2(__hmul2(*reinterpret_cast<const __nv_bfloat162*>(&bits), unit), factor);
    return *reinterpret_cast<const uint32_t*>(&value);
  };
  constexpr uint32_t kLower = 0x1404, kUpper = 0x3424;  // Two codes above zeros.
  first = make_uint4(pair(codes.x, kLower), pair(codes.x, kUpper), pair(codes.y, kLower),
                     pair(codes.y, kUpper));
  second = make_uint4(pair(codes.z, kLower), pair(codes.z, kUpper), pair(codes.w, kLower),
                      pair(codes.w, kUpper));
}

// Four neighbouring codes as floats.
__device__ __forceinline__ void widen_four(uint32_t codes, float scale, float* to) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[i] = __fmul_rn(fp8_value(static_cast<uint8_t>(codes >> 8 * i)), scale);
  }
}

}  // namespace trtmc::cuda
