#include "tensor/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "tensor/tensor_view.h"

namespace trtmc {
namespace {

using ::testing::ElementsAre;

// IEEE 754 binary16 by its definition. Finite only.
double f16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(DType, HasANameAndASize) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("bf16"), DType::kBF16);
  EXPECT_EQ(parse_dtype("BF16"), std::nullopt);
  EXPECT_EQ(element_bytes(DType::kF32), 4U);
  EXPECT_EQ(element_bytes(DType::kF16), 2U);
  EXPECT_EQ(element_bytes(DType::kBF16), 2U);
}

TEST(BF16, IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(bf16_to_float(0x3f80), 1.0F);
  EXPECT_EQ(bf16_to_float(0xc040), -3.0F);
  EXPECT_EQ(bf16_to_float(0x0001), 0x1p-133F);  // The smallest subnormal.
  EXPECT_EQ(bf16_to_float(0x7f80), std::numeric_limits<float>::infinity());
}

TEST(BF16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // Half way: even below.
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f818000U)), 0x3f82);  // Half way: even above.
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808001U)), 0x3f81);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f817fffU)), 0x3f81);
  EXPECT_EQ(float_to_bf16(-0.0F), 0x8000);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(BF16, KeepsEveryValueThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_bf16(value), bits);
  }
}

TEST(BF16, KeepsANaN) {
  // A payload in the lower half only: cut off, it would read as infinity.
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0xffffffffU)))));
}

TEST(F16, EveryFiniteValueIsThatOfItsDefinition) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00) == 0x7c00) continue;
    const auto half = static_cast<uint16_t>(bits);
    const float value = f16_to_float(half);
    ASSERT_EQ(value, f16_value(half)) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(float_to_f16(value), half) << bits;
  }
}

TEST(F16, RoundsToNearestAndTiesToEvenEverywhere) {
  for (uint16_t low = 0; low < 0x7bff; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    // Exact in float: binary16 has 11 bits, the middle needs one more.
    const auto middle = static_cast<float>((f16_value(low) + f16_value(high)) / 2);
    ASSERT_EQ(float_to_f16(middle), low % 2 == 0 ? low : high) << low;
    ASSERT_EQ(float_to_f16(std::nextafter(middle, 0.0F)), low) << low;
    ASSERT_EQ(float_to_f16(std::nextafter(middle, 1e9F)), high) << low;
    ASSERT_EQ(float_to_f16(-middle), 0x8000 | (low % 2 == 0 ? low : high)) << low;
  }
}

TEST(F16, OverflowsToInfinityAndKeepsNaN) {
  EXPECT_EQ(float_to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0F), 0x7c00);  // Half way from 65504 to what would be 65536.
  EXPECT_EQ(float_to_f16(-1e30F), 0xfc00);
  EXPECT_EQ(f16_to_float(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(f16_to_float(0x7c01)));
  EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(std::bit_cast<float>(0x7f800001U)))));
}

TEST(TensorView, ShapesCountAndPrint) {
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(num_elements({3, 5}), 15);
  EXPECT_EQ(to_string(Shape{3072, 2048}), "[3072, 2048]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(TensorView, ReadsPartsAsFloat) {
  const std::array<uint16_t, 4> bf16{0x3f80, 0xc040, 0x0000, 0x4000};
  std::array<float, 2> out{};
  read_floats({DType::kBF16, {4}, std::as_bytes(std::span(bf16))}, 1, out);
  EXPECT_THAT(out, ElementsAre(-3.0F, 0.0F));
  const std::array<uint16_t, 2> f16{0x3c00, 0xb800};
  read_floats({DType::kF16, {2}, std::as_bytes(std::span(f16))}, 0, out);
  EXPECT_THAT(out, ElementsAre(1.0F, -0.5F));
  const std::array<float, 3> f32{7, 8, 9};
  read_floats({DType::kF32, {3}, std::as_bytes(std::span(f32))}, 1, out);
  EXPECT_THAT(out, ElementsAre(8.0F, 9.0F));
}

TEST(TensorView, ReadsFromAnyAddress) {
  const std::array<unsigned char, 5> raw{0xff, 0x80, 0x3f, 0x40, 0xc0};
  std::array<float, 2> out{};
  read_floats({DType::kBF16, {2}, std::as_bytes(std::span(raw)).subspan(1)}, 0, out);
  EXPECT_THAT(out, ElementsAre(1.0F, -3.0F));
}

}  // namespace
}  // namespace trtmc
