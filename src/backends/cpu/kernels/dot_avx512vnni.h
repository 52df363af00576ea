// Dot products of unsigned and signed bytes, 16 rows at a time: AVX512-VNNI.
#pragma once

#include "backends/cpu/kernels/shifted_grid.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace trtmc::cpu::TRTMC_ISA {

constexpr int kDotTokens = 12;
constexpr int kDotAccumulators = 12;  // Each is a register of integers and one of floats.

using Ints = __m512i;
using Codes = __m512i;  // Weights + 128.
using SmallCodes = __m512i;
constexpr int kByteCodesZero = kQ8Zero;

static inline Ints set1_ints(int32_t value) { return _mm512_set1_epi32(value); }
// One instruction that broadcasts from memory: compilers make two of it, and reading them is what
// takes longest then.
static inline Ints dot(Codes codes, const int32_t& quad, Ints dots) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(dots) : "v"(codes), "m"(quad));
  return dots;
}
static inline Vec to_float(Ints dots) { return _mm512_cvtepi32_ps(dots); }
static inline Vec fused(Vec a, Vec b, Vec c) { return fma(a, b, c); }

static inline Codes load_codes(const uint8_t* p) { return _mm512_loadu_si512(p); }

static inline Codes look_up(__m512i indices) {
  const __m128i grid = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kShiftedGrid.values));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(grid), indices);
}
static inline Codes load_low_codes(const uint8_t* p) {
  return look_up(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(15)));
}
static inline Codes load_high_codes(const uint8_t* p) {
  return look_up(
      _mm512_and_si512(_mm512_srli_epi16(_mm512_loadu_si512(p), 4), _mm512_set1_epi8(15)));
}

static inline SmallCodes load_low_six(const uint8_t* p) {
  return _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(kQ6MostCode));
}
static inline SmallCodes load_high_twos(const uint8_t* a, const uint8_t* b, const uint8_t* c) {
  // The bits of `a` or, where the mask has none, of `b`.
  constexpr int kSelect = 0xE4;
  const __m512i top = _mm512_srli_epi16(_mm512_loadu_si512(a), 2);
  const __m512i middle = _mm512_srli_epi16(_mm512_loadu_si512(b), 4);
  const __m512i low = _mm512_srli_epi16(_mm512_loadu_si512(c), 6);
  const __m512i upper = _mm512_ternarylogic_epi32(top, middle, _mm512_set1_epi8(0x30), kSelect);
  const __m512i all = _mm512_ternarylogic_epi32(upper, low, _mm512_set1_epi8(0x3C), kSelect);
  return _mm512_and_si512(all, _mm512_set1_epi8(kQ6MostCode));
}

}  // namespace trtmc::cpu::TRTMC_ISA
