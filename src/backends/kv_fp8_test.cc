#include "backends/kv_fp8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tensor/dtype.h"

namespace trtmc {
namespace {

using testing::Each;
using testing::ElementsAre;

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

// The specification's table: (-1)^s 2^(e - 7) (1 + m / 8), and for e of 0 (-1)^s 2^-6 m / 8.
double value_of(int code) {
  const int exponent = code >> 3 & 15;
  const double mantissa = code & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa / 8, -6) : std::ldexp(1 + mantissa / 8, exponent - 7);
  return code >= 128 ? -magnitude : magnitude;
}
// The specification's only NaNs: all bits of exponent and mantissa set. No value has such a code.
bool is_number(int code) { return (code & 0x7f) != 0x7f; }

TEST(Fp8, HasTheValuesOfTheSpecification) {
  // Its section 5.3: the largest normal, the smallest, the largest subnormal, the smallest.
  EXPECT_EQ(fp8_value(0x7e), 448.0F);
  EXPECT_EQ(fp8_value(0x08), 0x1p-6F);
  EXPECT_EQ(fp8_value(0x07), 0.875F * 0x1p-6F);
  EXPECT_EQ(fp8_value(0x01), 0x1p-9F);
  EXPECT_TRUE(std::signbit(fp8_value(0x80)));
  for (int code = 0; code < 256; ++code) {
    if (!is_number(code)) continue;
    EXPECT_EQ(double{fp8_value(static_cast<uint8_t>(code))}, value_of(code)) << code;
  }
}

TEST(Fp8, GivesEachValueItsCode) {
  for (int code = 0; code < 256; ++code) {
    if (!is_number(code)) continue;
    EXPECT_EQ(fp8_code(bits_of(static_cast<float>(value_of(code)))), code);
  }
}

// Halfway between two codes the even one wins; the floats beside it go to the nearer code.
TEST(Fp8, RoundsToTheNearestAndTiesToEven) {
  for (int code = 0; code < kFp8MostCode; ++code) {
    const auto middle = static_cast<float>((value_of(code) + value_of(code + 1)) / 2);
    EXPECT_EQ(fp8_code(bits_of(middle)), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(fp8_code(bits_of(std::nextafter(middle, 0.0F))), code);
    EXPECT_EQ(fp8_code(bits_of(std::nextafter(middle, 1e9F))), code + 1);
    EXPECT_EQ(fp8_code(bits_of(-middle)), 128 + (code % 2 == 0 ? code : code + 1));
  }
}

TEST(Fp8, SaturatesAndFlushes) {
  for (const float large : {449.0F, 464.0F, 480.0F, 1e6F, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(fp8_code(bits_of(large)), kFp8MostCode) << large;
    EXPECT_EQ(fp8_code(bits_of(-large)), 0x80 | kFp8MostCode) << large;
  }
  for (const float small : {0.0F, 0x1p-10F, 0x1p-30F, 0x1p-126F, 0x1p-149F}) {
    EXPECT_EQ(fp8_code(bits_of(small)), 0) << small;
  }
}

TEST(Fp8, IsABf16OfAnotherExponent) {
  for (int code = 0; code < 256; ++code) {
    if (!is_number(code)) continue;
    const auto other = static_cast<uint32_t>(255 - code);
    const uint32_t pair = fp8_as_bf16_pair(static_cast<uint32_t>(code) << 8 | other << 24);
    EXPECT_EQ(bf16_to_float(static_cast<uint16_t>(pair)) * kFp8Unit, value_of(code));
    if (is_number(static_cast<int>(other))) {
      EXPECT_EQ(bf16_to_float(static_cast<uint16_t>(pair >> 16)) * kFp8Unit,
                value_of(static_cast<int>(other)));
    }
  }
}

// ---- Vectors

TEST(Fp8Head, HasItsLargestMagnitudeInTheUpperHalfOfTheCodes) {
  std::array<uint8_t, 4> codes{};
  // 448 itself needs no scale, 449 the next one.
  EXPECT_EQ(head_to_fp8(std::array<float, 4>{448, 0, -1, 0x1p-9F}, codes), 1.0F);
  EXPECT_THAT(codes, ElementsAre(0x7e, 0, 0xb8, 1));
  // 224.5 lies between 224 (even mantissa 6) and 240; -2^-9 halfway between 0 and a code.
  EXPECT_EQ(head_to_fp8(std::array<float, 4>{1, 449, 32, -0x1p-9F}, codes), 2.0F);
  EXPECT_THAT(codes, ElementsAre(0x30, 0x76, 0x58, 0x80));
  for (int e = -99; e < 127; ++e) {
    const float power = std::ldexp(1.0F, e);
    const float scale = head_to_fp8(std::array<float, 4>{power, power * 1.75F, 0, 0}, codes);
    EXPECT_EQ(scale, std::ldexp(1.0F, e - 8));
    EXPECT_THAT(codes, ElementsAre(0x78, kFp8MostCode, 0, 0));
  }
}

// Of a code of four bits, by half its last one; of what is small beside the largest, by half a
// subnormal's step. And a bf16 holds it.
TEST(Fp8Head, IsOffByHalfAStepAtMostAndExactInBf16) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-90, 110);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> x(128);
    const float size = std::ldexp(1.0F, exponent(random));
    for (float& value : x) value = normal(random) * size;
    x[7] *= 40;  // An outlier.
    std::vector<uint8_t> codes(x.size());
    const float scale = head_to_fp8(x, codes);
    EXPECT_EQ(std::bit_cast<uint32_t>(scale) & 0x807fffff, 0U) << "a power of two";
    for (size_t i = 0; i < x.size(); ++i) {
      const float value = scale * fp8_value(codes[i]);
      const double step = std::max(std::abs(double{x[i]}) / 16, double{scale} * 0x1p-10);
      ASSERT_LE(std::abs(double{value} - double{x[i]}), step);
      ASSERT_EQ(bf16_to_float(float_to_bf16(value)), value);
    }
  }
}

TEST(Fp8Head, OfZerosIsZeros) {
  const std::array<float, 3> x = {0, std::numeric_limits<float>::denorm_min(), -0x1p-101F};
  std::array<uint8_t, 3> codes = {1, 1, 1};
  EXPECT_EQ(head_to_fp8(x, codes), 0.0F);
  EXPECT_THAT(codes, Each(0));
}

TEST(Fp8Head, ShowsWhatIsNotFinite) {
  for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
    const std::array<float, 3> x = {1, bad, 2};
    std::array<uint8_t, 3> codes = {1, 1, 1};
    const float scale = head_to_fp8(x, codes);
    EXPECT_TRUE(std::isnan(scale));
    for (const uint8_t code : codes) EXPECT_TRUE(std::isnan(scale * fp8_value(code)));
  }
}

TEST(Fp8Head, StaysFiniteNearTheEndOfFloat) {
  constexpr float kMost = std::numeric_limits<float>::max();
  std::array<uint8_t, 2> codes{};
  const float scale = head_to_fp8(std::array<float, 2>{kMost, -0x1p120F}, codes);
  EXPECT_EQ(scale * fp8_value(codes[0]), 448 * 0x1p119F);
  EXPECT_EQ(scale * fp8_value(codes[1]), -0x1p120F);
}

}  // namespace
}  // namespace trtmc
