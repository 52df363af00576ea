#include "verify/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trtmc {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Metrics, RelativeL2IsTheErrorOverTheReferencesLength) {
  const std::vector<float> reference{3, 4}, value{3, 4.5};
  EXPECT_DOUBLE_EQ(relative_l2(value, reference), 0.1);
  EXPECT_EQ(relative_l2(reference, reference), 0);
}

TEST(Metrics, WhatIsNoNumberIsAsWrongAsCanBe) {
  const std::vector<float> reference{1, 2}, broken{1, kNaN}, zero{0, 0};
  EXPECT_EQ(relative_l2(broken, reference), std::numeric_limits<double>::infinity());
  EXPECT_EQ(relative_l2(reference, zero), std::numeric_limits<double>::infinity());
  EXPECT_EQ(cosine(broken, reference), -1);
  EXPECT_EQ(cosine(zero, reference), -1);
}

TEST(Metrics, CosineIgnoresLength) {
  const std::vector<float> a{1, 0}, b{5, 0}, c{0, 2}, d{1, 1};
  EXPECT_DOUBLE_EQ(cosine(a, b), 1);
  EXPECT_DOUBLE_EQ(cosine(a, c), 0);
  EXPECT_DOUBLE_EQ(cosine(a, d), std::sqrt(0.5));
}

TEST(Metrics, LogSumExpDoesNotOverflow) {
  const std::vector<float> values{1000, 1000};
  EXPECT_DOUBLE_EQ(log_sum_exp(values), 1000 + std::log(2.0));
}

TEST(Metrics, PercentileLiesBetweenNeighbours) {
  // numpy.percentile([1, 2, 3, 4, 10], [0, 5, 50, 95, 100])
  const std::vector<double> values{10, 1, 3, 2, 4};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(values, 5), 1.2);
  EXPECT_DOUBLE_EQ(percentile(values, 50), 3);
  EXPECT_DOUBLE_EQ(percentile(values, 95), 8.8);
  EXPECT_DOUBLE_EQ(percentile(values, 100), 10);
}

TEST(Metrics, EditDistanceCountsChangesOverTheLongerLength) {
  const std::vector<TokenId> kitten{1, 2, 3, 3, 4, 5}, sitting{6, 2, 3, 3, 2, 5, 7}, none;
  EXPECT_DOUBLE_EQ(edit_distance(kitten, sitting), 3.0 / 7);
  EXPECT_DOUBLE_EQ(edit_distance(sitting, kitten), 3.0 / 7);
  EXPECT_EQ(edit_distance(kitten, kitten), 0);
  EXPECT_EQ(edit_distance(none, none), 0);
  EXPECT_EQ(edit_distance(none, kitten), 1);
}

TEST(Metrics, ArgmaxTakesTheFirstOfEqualsAndNoNaN) {
  EXPECT_EQ(argmax(std::vector<float>{1, 3, 3}), 1);
  EXPECT_EQ(argmax(std::vector<float>{kNaN, 1, 2}), 2);
}

}  // namespace
}  // namespace trtmc
