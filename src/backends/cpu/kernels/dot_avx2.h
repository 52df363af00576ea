// Dot products of bytes, eight rows at a time: AVX2, whose instruction multiplies unsigned with
// signed bytes and adds pairs in 16 bits. Weights give their magnitude, activations take their
// sign: 2 * 128 * 127 stays below 2^15, so nothing saturates. Codes of six bits have no sign to
// give.
#pragma once

#include "backends/cpu/kernels/simd_avx2.h"
#include "tensor/block_formats.h"

namespace trtmc::cpu::TRTMC_ISA {

constexpr int kDotTokens = 6;
constexpr int kDotAccumulators = 6;  // Each is a register of integers and one of floats.

using Ints = __m256i;
struct Codes {
  __m256i weights;
  __m256i magnitudes;
};
using SmallCodes = __m256i;
constexpr int kByteCodesZero = 0;

static inline Ints set1_ints(int32_t value) { return _mm256_set1_epi32(value); }
static inline Ints dot(SmallCodes codes, const int32_t& quad, Ints dots) {
  const __m256i pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi32(quad));
  return _mm256_add_epi32(dots, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
static inline Ints dot(const Codes& codes, const int32_t& quad, Ints dots) {
  const __m256i tokens = _mm256_sign_epi8(_mm256_set1_epi32(quad), codes.weights);
  const __m256i pairs = _mm256_maddubs_epi16(codes.magnitudes, tokens);
  return _mm256_add_epi32(dots, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
static inline Vec to_float(Ints dots) { return _mm256_cvtepi32_ps(dots); }
static inline Vec fused(Vec a, Vec b, Vec c) { return fma(a, b, c); }

static inline __m256i load_bytes(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
static inline Codes with_magnitudes(__m256i weights) { return {weights, _mm256_abs_epi8(weights)}; }
static inline Codes load_codes(const uint8_t* p) {
  return with_magnitudes(
      _mm256_xor_si256(load_bytes(p), _mm256_set1_epi8(static_cast<char>(kQ8Zero))));
}

static inline Codes look_up(__m256i indices) {
  const __m128i grid = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kQ4Grid));
  return with_magnitudes(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(grid), indices));
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
