#include "model/sampling_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace trtmc {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(MassBits, LeaveRoomForAWholeVocabularyAsLikelyAsEachOther) {
  EXPECT_EQ(mass_bits(128256), 46);
  EXPECT_EQ(mass_bits(1), 48);
  for (const size_t size : {size_t{1}, size_t{131071}, size_t{131072}, size_t{1} << 24}) {
    EXPECT_LE(std::ldexp(static_cast<double>(size), mass_bits(size)), 0x1p63) << size;
  }
}

TEST(Exp2Mass, IsTheNearestIntegerWithinFiftyBits) {
  for (const int bits : {39, 46, 48}) {
    for (int i = 0; i <= 200000; ++i) {
      const double exponent = -i * 0.00031;
      const double exact = std::ldexp(std::exp2(exponent), bits);
      ASSERT_NEAR(static_cast<double>(exp2_mass(exponent, bits)), exact, 0.5 + exact * 0x1p-50)
          << exponent;
    }
  }
}

TEST(Exp2Mass, IsExactAtWholeExponents) {
  for (int n = 0; n <= 46; ++n) EXPECT_EQ(exp2_mass(-n, 46), uint64_t{1} << (46 - n));
  EXPECT_EQ(exp2_mass(-48, 46), 0u);
}

TEST(Exp2Mass, OfNothingIsNothing) {
  for (const double nothing : {-1e300, static_cast<double>(-kInf), static_cast<double>(kNan)}) {
    EXPECT_EQ(exp2_mass(nothing, 48), 0u);
  }
}

TEST(MassOf, SharesAmongEqualInfinities) {
  const MassScale scale = mass_scale(kInf, 0.5, 46);
  EXPECT_EQ(mass_of(kInf, scale), uint64_t{1} << 46);
  for (const float other : {std::numeric_limits<float>::max(), 3.0F, -kInf, kNan}) {
    EXPECT_EQ(mass_of(other, scale), 0u) << other;
  }
}

TEST(MassOf, OfTinyAndHugeTemperaturesIsNothingOrEverything) {
  for (const double temperature : {5e-324, 1e-300}) {
    const MassScale scale = mass_scale(2e30F, temperature, 46);
    EXPECT_EQ(mass_of(2e30F, scale), uint64_t{1} << 46);
    EXPECT_EQ(mass_of(std::nextafter(2e30F, 0.0F), scale), 0u);
  }
  const MassScale scale = mass_scale(3e38F, 1e308, 46);
  EXPECT_EQ(mass_of(-3e38F, scale), uint64_t{1} << 46);
}

TEST(ScoreKey, RisesWithTheScore) {
  const std::vector<float> rising = {-3e38F, -1, -1e-45F, 0, 1e-45F, 1, 3e38F, kInf};
  for (size_t i = 1; i < rising.size(); ++i) {
    EXPECT_LT(score_key(rising[i - 1]), score_key(rising[i])) << rising[i];
  }
  for (const float score : rising) EXPECT_EQ(score_of_key(score_key(score)), score);
  EXPECT_EQ(score_key(-0.0F), score_key(0.0F));
  for (const float nothing : {-kInf, kNan, -kNan}) EXPECT_EQ(score_key(nothing), 0u);
  EXPECT_GT(score_key(-std::numeric_limits<float>::max()), 0u);
}

TEST(NucleusMass, IsRoundedUpButForWhatDoublesCannotSay) {
  EXPECT_EQ(nucleus_mass(0.5, 4), 2u);
  EXPECT_EQ(nucleus_mass(0.51, 4), 3u);
  EXPECT_EQ(nucleus_mass(0.9, 10), 9u);  // The double next to 0.9 lies above it.
  EXPECT_EQ(nucleus_mass(0, 4), 1u);
  EXPECT_EQ(nucleus_mass(1, (uint64_t{1} << 63) - 1), (uint64_t{1} << 63) - 1);
}

TEST(LeastMass, IsRoundedUp) {
  EXPECT_EQ(least_mass(0.25, 46), uint64_t{1} << 44);
  EXPECT_EQ(least_mass(1, 46), uint64_t{1} << 46);
  EXPECT_EQ(least_mass(1e-300, 46), 1u);
}

TEST(DrawTarget, IsTheUpperHalfOfTheProduct) {
  constexpr uint64_t kHalf = uint64_t{1} << 63, kOnes = ~uint64_t{0};
  EXPECT_EQ(draw_target(0, 1000), 0u);
  EXPECT_EQ(draw_target(kHalf, 1000), 500u);
  EXPECT_EQ(draw_target(kHalf, kHalf), kHalf / 2);
  EXPECT_EQ(draw_target(kOnes, kOnes), kOnes - 1);  // (2^64 - 1)^2 = 2^128 - 2 * 2^64 + 1
  EXPECT_EQ(draw_target(kOnes, 1), 0u);
  EXPECT_EQ(draw_target(0xffffffff00000000, 0x100000001), 0xffffffffU);  // 2^96 - 2^32.
}

}  // namespace
}  // namespace trtmc
