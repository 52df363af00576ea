#include "verify/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace trtmc {

double euclidean_norm(std::span<const float> value) {
  double sum = 0;
  for (const float x : value) sum += static_cast<double>(x) * x;
  return std::sqrt(sum);
}

double squared_distance(std::span<const float> value, std::span<const float> reference) {
  TRTMC_CHECK(value.size() == reference.size(), "vectors of different sizes");
  double sum = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    const double difference = static_cast<double>(value[i]) - reference[i];
    sum += difference * difference;
  }
  return sum;
}

double relative_l2(std::span<const float> value, std::span<const float> reference) {
  const double sum = squared_distance(value, reference);
  if (sum == 0) return 0;
  const double result = std::sqrt(sum) / euclidean_norm(reference);
  return std::isnan(result) ? std::numeric_limits<double>::infinity() : result;
}

double cosine(std::span<const float> value, std::span<const float> reference) {
  TRTMC_CHECK(value.size() == reference.size(), "vectors of different sizes");
  double product = 0;
  for (size_t i = 0; i < value.size(); ++i) product += static_cast<double>(value[i]) * reference[i];
  const double result = product / (euclidean_norm(value) * euclidean_norm(reference));
  return std::isnan(result) ? -1 : result;
}

double log_sum_exp(std::span<const float> value) {
  const double largest = *std::max_element(value.begin(), value.end());
  double sum = 0;
  for (const float x : value) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

double percentile(std::vector<double> values, double percent) {
  TRTMC_CHECK(!values.empty(), "a percentile of nothing");
  std::sort(values.begin(), values.end());
  const double place = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  // Equal neighbours first: two infinities have no difference to take a part of.
  if (values[below] == values[above]) return values[below];
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

double finite(double value) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return std::clamp(value, -kMost, kMost);
}

double edit_distance(std::span<const TokenId> a, std::span<const TokenId> b) {
  if (a.empty() && b.empty()) return 0;
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return static_cast<double>(row.back()) / static_cast<double>(std::max(a.size(), b.size()));
}

TokenId argmax(std::span<const float> values) {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] > values[best] || std::isnan(values[best])) best = i;
  }
  return static_cast<TokenId>(best);
}

}  // namespace trtmc
