// Keys and values of fp8: what a backend keeps of one head at one position, for the host and for a
// device.
//
// Codes are e4m3 of the OCP 8-bit Floating Point Specification 1.0: a sign, four bits of exponent
// (bias 7), three of mantissa; 448 the largest, no infinity. A vector has a scale, the power of two
// that puts its largest magnitude between 224 and 448. A value, scale * code, has four significant
// bits then and is exactly a bf16 too, so tensor cores take it without another rounding; and
// scaling itself rounds nothing. Why: docs/decisions/0024-fp8-scales-are-powers-of-two.md.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace trtmc {

constexpr uint8_t kFp8MostCode = 0x7e;  // 448.

// ---- On the bits of float32, so that every compiler has the same.

constexpr uint32_t kFloatSign = 0x80000000;
constexpr uint32_t kFloatInfinity = 0x7f800000;
constexpr int kFloatMantissaBits = 23;
constexpr uint32_t float_power_bits(int exponent) {
  return static_cast<uint32_t>(exponent + 127) << kFloatMantissaBits;
}

// The scale of a vector whose largest magnitude (the bits as a whole number) is `most`. As of q8:
// what is below 2^-100 throughout is zeros, of scale 0; where something isn't finite the scale is
// not a number. Above 448 * 2^119, which float32 hardly reaches, values saturate.
constexpr uint32_t fp8_scale_bits(uint32_t most) {
  constexpr uint32_t kNotANumber = 0x7fc00000;
  constexpr uint32_t kMostScale = float_power_bits(119);
  // 448 is 1.75 * 2^8: beyond 1.75 this carries into the exponent.
  constexpr uint32_t kBeyondMost = 0x7fffff - 0x600000;
  if (most >= kFloatInfinity) return kNotANumber;
  if (most < float_power_bits(-100)) return 0;
  const uint32_t scale = ((most + kBeyondMost) & kFloatInfinity) - (uint32_t{8} << 23);
  return scale < kMostScale ? scale : kMostScale;
}

// What such a vector is multiplied by: one by the scale, or 0 where its codes are zeros.
constexpr uint32_t fp8_inverse_bits(uint32_t scale) {
  return scale == 0 || scale >= kFloatInfinity ? 0 : (uint32_t{254} << 23) - scale;
}

// The nearest code of a float that is a number, ties to even; 448 for what is larger.
constexpr uint8_t fp8_code(uint32_t bits) {
  constexpr int kCut = kFloatMantissaBits - 3;
  constexpr uint32_t kSmallestNormal = float_power_bits(-6);
  const uint32_t sign = bits >> 24 & 0x80;
  uint32_t magnitude = bits & ~kFloatSign;
  // Below it codes are multiples of 2^-9: the whole mantissa moves to there.
  int cut = kCut;
  if (magnitude < kSmallestNormal) {
    const int exponent = static_cast<int>(magnitude >> kFloatMantissaBits);
    const int places = 127 - 9 + kFloatMantissaBits - exponent;
    cut = places < 30 ? places : 30;  // Nothing is left by then.
    magnitude = (magnitude & 0x7fffff) | 0x800000;
  } else {
    magnitude -= kSmallestNormal - (uint32_t{1} << kFloatMantissaBits);
  }
  const uint32_t half = (uint32_t{1} << (cut - 1)) - 1 + (magnitude >> cut & 1);
  const uint32_t code = (magnitude + half) >> cut;
  return static_cast<uint8_t>(sign | (code < kFp8MostCode ? code : kFp8MostCode));
}

// Two codes as the two bf16 of a word, each 2^-120 of its value (also where it is subnormal), which
// a multiplication by kFp8Unit makes right. `high`: the codes in the upper bytes of the halves.
constexpr float kFp8Unit = 0x1p120F;
constexpr uint32_t fp8_as_bf16_pair(uint32_t high) {
  return (high & 0x80008000) | (high >> 4 & 0x07f007f0);
}

constexpr float fp8_value(uint8_t code) {
  return std::bit_cast<float>(fp8_as_bf16_pair(uint32_t{code} << 24)) * kFp8Unit;
}

// ---- A vector

// Fills codes [as many as x] and returns the scale.
float head_to_fp8(std::span<const float> x, std::span<uint8_t> codes);

}  // namespace trtmc
