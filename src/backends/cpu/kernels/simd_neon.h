// Four floats of NEON, which every 64-bit ARM has, with its fused multiply-add and the conversion
// from half floats (Arm Architecture Reference Manual, Advanced SIMD).
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace trtmc::cpu::TRTMC_ISA {

constexpr int kLanes = 4;
constexpr int kAccumulators = 24;  // Registers that a tile of a product may take for its sums.
constexpr int kTileTokens = 6;
constexpr int kAttentionHeads = 2;  // Query heads that share the registers in attention.

using Vec = float32x4_t;

static inline Vec zero() { return vdupq_n_f32(0); }
static inline Vec set1(float x) { return vdupq_n_f32(x); }
static inline Vec load(const float* p) { return vld1q_f32(p); }
static inline void store(float* p, Vec v) { vst1q_f32(p, v); }
static inline Vec add(Vec a, Vec b) { return vaddq_f32(a, b); }
static inline Vec sub(Vec a, Vec b) { return vsubq_f32(a, b); }
static inline Vec mul(Vec a, Vec b) { return vmulq_f32(a, b); }
static inline Vec div(Vec a, Vec b) { return vdivq_f32(a, b); }
static inline Vec fma(Vec a, Vec b, Vec c) { return vfmaq_f32(c, a, b); }
// The second argument where either is not a number; NEON's own would give the one that is not.
static inline Vec max(Vec a, Vec b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline Vec min(Vec a, Vec b) { return vbslq_f32(vcltq_f32(a, b), a, b); }

static inline uint32x4_t load_bits(const uint16_t* p) {
  return vreinterpretq_u32_u16(vld1q_u16(p));
}
// Columns 0 and 1 of four rows of bf16 pairs.
static inline Vec load_pair_low(const uint16_t* p) {
  return vreinterpretq_f32_u32(vshlq_n_u32(load_bits(p), 16));
}
static inline Vec load_pair_high(const uint16_t* p) {
  return vreinterpretq_f32_u32(vandq_u32(load_bits(p), vdupq_n_u32(0xFFFF0000)));
}
static inline Vec load_bf16(const uint16_t* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
static inline Vec load_i8(const int8_t* p) {
  int32_t bits = 0;
  __builtin_memcpy(&bits, p, sizeof(bits));
  const int16x8_t wide = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(bits)));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
}
// e4m3 with its exponent and mantissa where f16 has them is 2^-8 of its value, subnormals too.
static inline Vec load_fp8(const uint8_t* p) {
  uint32_t bits = 0;
  __builtin_memcpy(&bits, p, sizeof(bits));
  const int16x4_t wide = vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(bits))));
  const int16x4_t moved = vand_s16(vshl_n_s16(wide, 7), vdup_n_s16(static_cast<int16_t>(0xBF80)));
  return vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_s16(moved)), 256.0F);
}
static inline Vec load_f16(const uint16_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

// v where first <= lane + offset < last, and `other` elsewhere.
static inline Vec select_lanes(Vec v, Vec other, int offset, int first, int last) {
  const int32x4_t lane = vaddq_s32(int32x4_t{0, 1, 2, 3}, vdupq_n_s32(offset));
  const uint32x4_t inside =
      vandq_u32(vcgeq_s32(lane, vdupq_n_s32(first)), vcltq_s32(lane, vdupq_n_s32(last)));
  return vbslq_f32(inside, v, other);
}
// To the nearest integer, ties to even; and 2^v for an integer v in [-126, 127].
static inline Vec round_nearest(Vec v) { return vrndnq_f32(v); }
static inline Vec power_of_two(Vec v) {
  const int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(v), vdupq_n_s32(127));
  return vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23));
}
static inline Vec floor_half(Vec v) { return vcvtq_f32_s32(vshrq_n_s32(vcvtq_s32_f32(v), 1)); }
static inline float reduce_add(Vec v) {
  return vpadds_f32(vadd_f32(vget_low_f32(v), vget_high_f32(v)));
}
static inline float reduce_max(Vec v) { return vmaxnmvq_f32(v); }

}  // namespace trtmc::cpu::TRTMC_ISA
