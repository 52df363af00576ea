// Rows of activations on the way from one operation to the next: normed or as they are, all of them
// or some, as floats or as terms.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/terms.h"

namespace trtmc::cuda {

// Of a row that is normed: its width is at most so many times kNormColumns.
inline constexpr int kMostNormParts = 128;

struct RowsArgs {
  const float* x;       // [.., x_stride]
  const int32_t* rows;  // [num_rows] of x; null: the first.
  int num_rows;
  int64_t x_stride;
  int width;
  const float* norm;  // [width]; null: as they are.
  float eps;
  float* out;  // [num_rows, out_stride], or null:
  int64_t out_stride;
  TermBuffer out_terms;
  int num_terms;  // 1 or 3
};
void launch_rows(const RowsArgs& args, const Launch& how);

}  // namespace trtmc::cuda
