// Vectors of four floats in the compiler's own terms: what any 128-bit unit can do, and a scalar
// one too.
#pragma once

#include <cstdint>

namespace trtmc::cpu::TRTMC_ISA {

constexpr int kLanes = 4;
constexpr int kAccumulators = 8;  // Registers that a tile of a product may take for its sums.
constexpr int kTileTokens = 2;
constexpr int kAttentionHeads = 1;  // Query heads that share the registers in attention.

using Vec = float __attribute__((vector_size(16)));
using IntVec = int32_t __attribute__((vector_size(16)));

static inline Vec zero() { return Vec{}; }
static inline Vec set1(float x) { return Vec{x, x, x, x}; }
static inline Vec load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
static inline void store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof(v)); }
static inline Vec add(Vec a, Vec b) { return a + b; }
static inline Vec sub(Vec a, Vec b) { return a - b; }
static inline Vec mul(Vec a, Vec b) { return a * b; }
static inline Vec div(Vec a, Vec b) { return a / b; }
static inline Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
// The second argument where either is not a number.
static inline Vec max(Vec a, Vec b) { return a > b ? a : b; }
static inline Vec min(Vec a, Vec b) { return a < b ? a : b; }

static inline Vec bits_to_float(IntVec v) { return reinterpret_cast<Vec>(v); }
// Columns 0 and 1 of four rows of bf16 pairs.
static inline Vec load_pair_low(const uint16_t* p) {
  IntVec v;
  __builtin_memcpy(&v, p, sizeof(v));
  return bits_to_float(v << 16);
}
static inline Vec load_pair_high(const uint16_t* p) {
  IntVec v;
  __builtin_memcpy(&v, p, sizeof(v));
  return bits_to_float(v & static_cast<int32_t>(0xFFFF0000));
}
static inline Vec load_bf16(const uint16_t* p) {
  const IntVec v = {p[0], p[1], p[2], p[3]};
  return bits_to_float(v << 16);
}
static inline Vec load_i8(const int8_t* p) {
  const Vec v = {static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
                 static_cast<float>(p[3])};
  return v;
}
// As of load_f16; e4m3 has neither infinity here nor NaN.
static inline Vec load_fp8(const uint8_t* p) {
  const IntVec v = {p[0], p[1], p[2], p[3]};
  return bits_to_float((v & 0x80) << 24 | (v & 0x7F) << 20) * set1(0x1p120F);
}
static inline Vec load_f16(const uint16_t* p) {
  const IntVec h = {p[0], p[1], p[2], p[3]};
  // Exponent and mantissa move to a float's place and are scaled by 2^112, the difference of the
  // biases; that makes subnormals exact too. Infinity and NaN get the largest exponent afterwards.
  const IntVec magnitude = (h & 0x7FFF) << 13;
  const Vec scaled = bits_to_float(magnitude) * set1(0x1p112F);
  const IntVec special = (h & 0x7C00) == 0x7C00;
  const IntVec bits = (reinterpret_cast<IntVec>(scaled) & ~special) |
                      ((magnitude | 0x7F800000) & special) | ((h & 0x8000) << 16);
  return bits_to_float(bits);
}

// v where first <= lane + offset < last, and `other` elsewhere.
static inline Vec select_lanes(Vec v, Vec other, int offset, int first, int last) {
  const IntVec lane = IntVec{0, 1, 2, 3} + offset;
  const IntVec inside = (lane >= first) & (lane < last);
  return inside ? v : other;
}
// To the nearest integer, ties to even, for |v| < 2^22; and 2^v for an integer v in [-126, 127].
static inline Vec round_nearest(Vec v) {
  const Vec magic = set1(0x1.8p23F);
  return (v + magic) - magic;
}
static inline Vec power_of_two(Vec v) {
  return bits_to_float((__builtin_convertvector(v, IntVec) + 127) << 23);
}
static inline Vec floor_half(Vec v) {
  return __builtin_convertvector(__builtin_convertvector(v, IntVec) >> 1, Vec);
}
static inline float reduce_add(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }
static inline float reduce_max(Vec v) {
  float largest = v[0];
  for (int i = 1; i < kLanes; ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

}  // namespace trtmc::cpu::TRTMC_ISA
