// What the two kernels that multiply by a bf16 matrix have in common: gemv for a few tokens, gemm
// for many. Both give the same bits.
//
// A matrix lies in panels of 16 rows, each cut into steps of 16 columns of 512 bytes: lane by lane
// the 16 bytes that a lane feeds the tensor core (pack_fragments in weights.h makes it).
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/terms.h"

namespace trtmc::cuda {

enum class Epilogue {
  kStore,   // out = W x
  kAdd,     // out += W x
  kSwiglu,  // Panels alternate gate and up: the terms of silu(gate) * up.
};

struct ProductArgs {
  const void* weights;
  int num_panels;      // Of kSwiglu both kinds together.
  int panel_distance;  // 2 where a matrix alternates with another, else 1.
  int steps;           // Along k.
  int num_terms;       // 1 or 3
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
  float* out;  // [num_tokens, out_stride], room for every row of every panel
  int64_t out_stride;
  int num_rows;  // Of W. Rows behind them are not stored.
  TermBuffer out_terms;
};

}  // namespace trtmc::cuda
