// Sixteen floats of AVX-512 (F, BW, VL, DQ): a register is a panel's 16 rows.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace trtmc::cpu::TRTMC_ISA {

constexpr int kLanes = 16;
constexpr int kAccumulators = 24;  // Registers that a tile of a product may take for its sums.
constexpr int kTileTokens = 12;
constexpr int kAttentionHeads = 4;  // Query heads that share the registers in attention.

using Vec = __m512;

static inline Vec zero() { return _mm512_setzero_ps(); }
static inline Vec set1(float x) { return _mm512_set1_ps(x); }
static inline Vec load(const float* p) { return _mm512_loadu_ps(p); }
static inline void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
static inline Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
static inline Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
static inline Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
static inline Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
static inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
// The second argument where either is not a number.
static inline Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
static inline Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }

static inline __m256i load_half_bits(const uint16_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
// Columns 0 and 1 of sixteen rows of bf16 pairs.
static inline Vec load_pair_low(const uint16_t* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16));
}
static inline Vec load_pair_high(const uint16_t* p) {
  const __m512i mask = _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000));
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), mask));
}
static inline Vec load_bf16(const uint16_t* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_half_bits(p)), 16));
}
static inline Vec load_i8(const int8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
// e4m3 with its exponent and mantissa where f16 has them is 2^-8 of its value, subnormals too.
static inline Vec load_fp8(const uint8_t* p) {
  const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i mask = _mm256_set1_epi16(static_cast<int16_t>(0xBF80));
  return mul(_mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(wide, 7), mask)), set1(256.0F));
}
static inline Vec load_f16(const uint16_t* p) { return _mm512_cvtph_ps(load_half_bits(p)); }

// v where first <= lane + offset < last, and `other` elsewhere.
static inline Vec select_lanes(Vec v, Vec other, int offset, int first, int last) {
  const __m512i lane =
      _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                       _mm512_set1_epi32(offset));
  const __mmask16 inside = _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(first)) &
                           _mm512_cmplt_epi32_mask(lane, _mm512_set1_epi32(last));
  return _mm512_mask_blend_ps(inside, other, v);
}
// To the nearest integer, ties to even; and 2^v for an integer v in [-126, 127].
static inline Vec round_nearest(Vec v) {
  return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline Vec power_of_two(Vec v) {
  const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
}
static inline Vec floor_half(Vec v) {
  return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_cvtps_epi32(v), 1));
}
static inline float reduce_add(Vec v) { return _mm512_reduce_add_ps(v); }
static inline float reduce_max(Vec v) { return _mm512_reduce_max_ps(v); }

}  // namespace trtmc::cpu::TRTMC_ISA
