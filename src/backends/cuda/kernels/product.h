// What the two kernels that multiply by a bf16 matrix have in common: gemv for a few tokens, gemm
// for many. Both give the same bits.
//
// A matrix is cut into panels of 16 rows, and these into steps of 16 columns of 512 bytes: lane by
// lane the 16 bytes that a lane feeds the tensor core (pack_fragments in weights.h makes it). Four
// steps of four panels lie together, panel by panel: what is copied at once where 64 rows are
// multiplied at once.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/terms.h"

namespace trtmc::cuda {

enum class Epilogue {
  kStore,   // out = W x
  kAdd,     // out += W x
  kSwiglu,  // Rows alternate gate and up: the terms of silu(gate) * up.
};

inline constexpr int kStepLanes = 32;   // Of a panel's step, 16 bytes each.
inline constexpr int kGroupPanels = 4;  // Matrices are whole groups.
inline constexpr int kStageSteps = 4;

// Where a panel's step lies, in 16 bytes.
inline constexpr int64_t weight_part(int panel, int step, int steps) {
  const int64_t stage = int64_t{panel / kGroupPanels} * (steps / kStageSteps) + step / kStageSteps;
  return (stage * (kGroupPanels * kStageSteps) + panel % kGroupPanels * kStageSteps +
          step % kStageSteps) *
         kStepLanes;
}

struct ProductArgs {
  const void* weights;
  int num_panels;  // A multiple of kGroupPanels.
  int steps;       // Along k.
  int num_terms;   // 1 or 3
  int num_tokens;

  // Either terms, or rows of float that are normed (and split) on the way in. The latter in gemv
  // only.
  TermBuffer in;
  const float* x;       // [.., x_stride]
  const int32_t* rows;  // Which rows of x, null: the first num_tokens.
  const float* norm;    // [width] Null: `in` is what is multiplied.
  int64_t x_stride;
  int width;
  float eps;

  Epilogue epilogue;
  float* out;  // [num_tokens, out_stride], rows begin at multiples of 16 bytes
  int64_t out_stride;
  int num_rows;  // Of W. Rows behind them are not stored.
  // Where a matrix alternates with another row by row, 2; every such row is stored, from the one
  // given on, as if the other were not there. Else 1 and 0.
  int row_distance;
  int first_row;
  TermBuffer out_terms;
};

}  // namespace trtmc::cuda
