// How far a result is from a reference, as single numbers. Sums are in double.
#pragma once

#include <span>
#include <vector>

#include "base/token.h"

namespace trtmc {

// |value - reference|^2. Both have the same size.
double squared_distance(std::span<const float> value, std::span<const float> reference);

// |value - reference| / |reference|, Euclidean; infinity if it is not a number or the reference is
// zero and the value is not. Both have the same size.
double relative_l2(std::span<const float> value, std::span<const float> reference);

// The cosine of the angle between them; -1 if it is not a number.
double cosine(std::span<const float> value, std::span<const float> reference);

double euclidean_norm(std::span<const float> value);
double log_sum_exp(std::span<const float> value);

// The `percent`-th percentile, between the two nearest values in proportion (numpy's default).
// `values` is not empty.
double percentile(std::vector<double> values, double percent);

// The nearest finite number: reports are JSON, which has no infinity.
double finite(double value);

// Levenshtein distance over the longer length: 0 for equal, 1 for nothing in common.
double edit_distance(std::span<const TokenId> a, std::span<const TokenId> b);

// The index of the largest value, the smallest index of equals. A NaN never wins.
TokenId argmax(std::span<const float> values);

}  // namespace trtmc
