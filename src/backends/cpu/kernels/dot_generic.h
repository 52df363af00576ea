// Dot products of bytes in the compiler's own terms, four rows at a time.
#pragma once

#include "backends/cpu/kernels/simd_generic.h"
#include "tensor/block_formats.h"

namespace trtmc::cpu::TRTMC_ISA {

constexpr int kDotTokens = 2;
constexpr int kDotAccumulators = 4;  // Each is a register of integers and one of floats.

using Ints = IntVec;
struct Codes {
  IntVec columns[kQuadColumns];
};
using SmallCodes = Codes;
constexpr int kByteCodesZero = 0;

static inline Ints set1_ints(int32_t value) { return Ints{} + value; }
static inline Ints dot(const Codes& codes, const int32_t& quad, Ints dots) {
  for (int column = 0; column < kQuadColumns; ++column) {
    dots += codes.columns[column] * static_cast<int8_t>(quad >> (8 * column));
  }
  return dots;
}
static inline Vec to_float(Ints dots) { return __builtin_convertvector(dots, Vec); }
// Fused as everywhere, if need be by the library: one in 32 of the multiplications.
static inline Vec fused(Vec a, Vec b, Vec c) {
  Vec result;
  for (int i = 0; i < kLanes; ++i) result[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return result;
}

// decode_one(i): the code of byte i.
template <typename Decode>
static inline Codes decode(Decode decode_one) {
  Codes codes;
  for (int column = 0; column < kQuadColumns; ++column) {
    for (int row = 0; row < kLanes; ++row) {
      codes.columns[column][row] = decode_one(row * kQuadColumns + column);
    }
  }
  return codes;
}
static inline Codes load_codes(const uint8_t* p) {
  return decode([p](int i) { return p[i] - kQ8Zero; });
}
static inline Codes load_low_codes(const uint8_t* p) {
  return decode([p](int i) { return int32_t{kQ4Grid[p[i] & 15]}; });
}
static inline Codes load_high_codes(const uint8_t* p) {
  return decode([p](int i) { return int32_t{kQ4Grid[p[i] >> 4]}; });
}

static inline SmallCodes load_low_six(const uint8_t* p) {
  return decode([p](int i) { return p[i] & kQ6MostCode; });
}
static inline SmallCodes load_high_twos(const uint8_t* a, const uint8_t* b, const uint8_t* c) {
  return decode([=](int i) { return a[i] >> 6 << 4 | b[i] >> 6 << 2 | c[i] >> 6; });
}

}  // namespace trtmc::cpu::TRTMC_ISA
