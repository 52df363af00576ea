#include "backends/kv_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace trtmc {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(KvBytes, PutTheLargestMagnitudeAtAnEnd) {
  const std::array<float, 5> x = {-254, 127, 1, 3, -5};
  std::array<int8_t, 5> codes{};
  EXPECT_EQ(head_to_bytes(x, codes), 2.0F);
  // Halves of 1, 3 and 5 are ties: to even.
  EXPECT_THAT(codes, ElementsAre(-127, 64, 0, 2, -2));
}

TEST(KvBytes, AreOffByHalfAStepAtMost) {
  std::vector<float> x;
  for (int i = 0; i < 1000; ++i) x.push_back(std::sin(static_cast<float>(i * i)) * 3);
  std::vector<int8_t> codes(x.size());
  const float scale = head_to_bytes(x, codes);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::abs(x[i] - scale * static_cast<float>(codes[i])), scale * 0.50001F);
  }
}

TEST(KvBytes, OfZerosAreZeros) {
  const std::array<float, 3> x = {0, std::numeric_limits<float>::denorm_min(), -0.0F};
  std::array<int8_t, 3> codes = {1, 1, 1};
  EXPECT_EQ(head_to_bytes(x, codes), 0.0F);
  EXPECT_THAT(codes, Each(0));
}

TEST(KvBytes, ShowWhatIsNotFinite) {
  for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
    const std::array<float, 3> x = {1, bad, 2};
    std::array<int8_t, 3> codes{};
    EXPECT_TRUE(std::isnan(head_to_bytes(x, codes)));
  }
}

}  // namespace
}  // namespace trtmc
