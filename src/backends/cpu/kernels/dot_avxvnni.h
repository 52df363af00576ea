// Dot products of unsigned and signed bytes, eight rows at a time: AVX-VNNI, for processors without
// AVX-512.
#pragma once

#include "backends/cpu/kernels/shifted_grid.h"
#include "backends/cpu/kernels/simd_avx2.h"

namespace trtmc::cpu::TRTMC_ISA {

constexpr int kDotTokens = 6;
constexpr int kDotAccumulators = 6;  // Each is a register of integers and one of floats.

using Ints = __m256i;
using Codes = __m256i;  // Weights + 128.
using SmallCodes = __m256i;
constexpr int kByteCodesZero = kQ8Zero;

static inline Ints set1_ints(int32_t value) { return _mm256_set1_epi32(value); }
static inline Ints dot(Codes codes, const int32_t& quad, Ints dots) {
  return _mm256_dpbusd_avx_epi32(dots, codes, _mm256_set1_epi32(quad));
}
static inline Vec to_float(Ints dots) { return _mm256_cvtepi32_ps(dots); }
static inline Vec fused(Vec a, Vec b, Vec c) { return fma(a, b, c); }

static inline __m256i load_bytes(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
static inline Codes load_codes(const uint8_t* p) { return load_bytes(p); }

static inline Codes look_up(__m256i indices) {
  const __m128i grid = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kShiftedGrid.values));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(grid), indices);
}
static inline Codes load_low_codes(const uint8_t* p) {
  return look_up(_mm256_and_si256(load_bytes(p), _mm256_set1_epi8(15)));
}
static inline Codes load_high_codes(const uint8_t* p) {
  return look_up(_mm256_and_si256(_mm256_srli_epi16(load_bytes(p), 4), _mm256_set1_epi8(15)));
}

static inline SmallCodes load_low_six(const uint8_t* p) {
  return _mm256_and_si256(load_bytes(p), _mm256_set1_epi8(kQ6MostCode));
}
static inline SmallCodes load_high_twos(const uint8_t* a, const uint8_t* b, const uint8_t* c) {
  const __m256i top = _mm256_srli_epi16(load_bytes(a), 2);
  const __m256i middle = _mm256_srli_epi16(load_bytes(b), 4);
  const __m256i low = _mm256_srli_epi16(load_bytes(c), 6);
  return _mm256_or_si256(_mm256_and_si256(top, _mm256_set1_epi8(0x30)),
                         _mm256_or_si256(_mm256_and_si256(middle, _mm256_set1_epi8(0x0C)),
                                         _mm256_and_si256(low, _mm256_set1_epi8(0x03))));
}

}  // namespace trtmc::cpu::TRTMC_ISA
