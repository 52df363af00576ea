// Eight floats of AVX2 with FMA and F16C.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace trtmc::cpu::TRTMC_ISA {

constexpr int kLanes = 8;
constexpr int kAccumulators = 12;  // Registers that a tile of a product may take for its sums.
constexpr int kTileTokens = 6;
constexpr int kAttentionHeads = 2;  // Query heads that share the registers in attention.

using Vec = __m256;

static inline Vec zero() { return _mm256_setzero_ps(); }
static inline Vec set1(float x) { return _mm256_set1_ps(x); }
static inline Vec load(const float* p) { return _mm256_loadu_ps(p); }
static inline void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
static inline Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
static inline Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
static inline Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
static inline Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
static inline Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
// The second argument where either is not a number.
static inline Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
static inline Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }

static inline __m256i load_bits(const uint16_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
static inline __m128i load_half_bits(const uint16_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
// Columns 0 and 1 of eight rows of bf16 pairs.
static inline Vec load_pair_low(const uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(load_bits(p), 16));
}
static inline Vec load_pair_high(const uint16_t* p) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int32_t>(0xFFFF0000));
  return _mm256_castsi256_ps(_mm256_and_si256(load_bits(p), mask));
}
static inline Vec load_bf16(const uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half_bits(p)), 16));
}
static inline Vec load_i8(const int8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
// e4m3 with its exponent and mantissa where f16 has them is 2^-8 of its value, subnormals too.
static inline Vec load_fp8(const uint8_t* p) {
  const __m128i wide = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m128i mask = _mm_set1_epi16(static_cast<int16_t>(0xBF80));
  return mul(_mm256_cvtph_ps(_mm_and_si128(_mm_slli_epi16(wide, 7), mask)), set1(256.0F));
}
static inline Vec load_f16(const uint16_t* p) { return _mm256_cvtph_ps(load_half_bits(p)); }

// v where first <= lane + offset < last, and `other` elsewhere.
static inline Vec select_lanes(Vec v, Vec other, int offset, int first, int last) {
  const __m256i lane =
      _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(offset));
  const __m256i inside = _mm256_and_si256(_mm256_cmpgt_epi32(lane, _mm256_set1_epi32(first - 1)),
                                          _mm256_cmpgt_epi32(_mm256_set1_epi32(last), lane));
  return _mm256_blendv_ps(other, v, _mm256_castsi256_ps(inside));
}
// To the nearest integer, ties to even; and 2^v for an integer v in [-126, 127].
static inline Vec round_nearest(Vec v) {
  return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline Vec power_of_two(Vec v) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}
static inline Vec floor_half(Vec v) {
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_cvtps_epi32(v), 1));
}
static inline float reduce_add(Vec v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
static inline float reduce_max(Vec v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace trtmc::cpu::TRTMC_ISA
