// Dot products of signed bytes, four rows at a time: by the instruction for it (FEAT_DotProd) where
// the set has it, else by products of 16 bits that are added in pairs.
#pragma once

#include "backends/cpu/kernels/simd_neon.h"
#include "tensor/block_formats.h"

namespace trtmc::cpu::TRTMC_ISA {

constexpr int kDotTokens = 6;
constexpr int kDotAccumulators = 12;  // Each is a register of integers and one of floats.

using Ints = int32x4_t;
using Codes = int8x16_t;
using SmallCodes = int8x16_t;
constexpr int kByteCodesZero = 0;

static inline Ints set1_ints(int32_t value) { return vdupq_n_s32(value); }
static inline Ints dot(Codes codes, const int32_t& quad, Ints dots) {
  const int8x16_t tokens = vreinterpretq_s8_s32(vdupq_n_s32(quad));
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(dots, codes, tokens);
#else
  const int16x8_t low = vmull_s8(vget_low_s8(codes), vget_low_s8(tokens));
  const int16x8_t high = vmull_high_s8(codes, tokens);
  return vaddq_s32(dots, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
#endif
}
static inline Vec to_float(Ints dots) { return vcvtq_f32_s32(dots); }
static inline Vec fused(Vec a, Vec b, Vec c) { return fma(a, b, c); }

static inline Codes load_codes(const uint8_t* p) {
  return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p), vdupq_n_u8(kQ8Zero)));
}
static inline Codes load_low_codes(const uint8_t* p) {
  return vqtbl1q_s8(vld1q_s8(kQ4Grid), vandq_u8(vld1q_u8(p), vdupq_n_u8(15)));
}
static inline Codes load_high_codes(const uint8_t* p) {
  return vqtbl1q_s8(vld1q_s8(kQ4Grid), vshrq_n_u8(vld1q_u8(p), 4));
}

static inline SmallCodes load_low_six(const uint8_t* p) {
  return vreinterpretq_s8_u8(vandq_u8(vld1q_u8(p), vdupq_n_u8(kQ6MostCode)));
}
// Shifts that keep what is above the bits they bring in.
static inline SmallCodes load_high_twos(const uint8_t* a, const uint8_t* b, const uint8_t* c) {
  const uint8x16_t top = vshrq_n_u8(vld1q_u8(a), 2);
  return vreinterpretq_s8_u8(vsriq_n_u8(vsriq_n_u8(top, vld1q_u8(b), 4), vld1q_u8(c), 6));
}

}  // namespace trtmc::cpu::TRTMC_ISA
