// The plain operations: float rows in, float rows out. What checkpoints of float32 run on, and what
// the fused kernels are held to.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/launch.h"

namespace trtmc::cuda {

enum class Pairwise { kAdd, kSwiglu };

// out = a + b, or silu(a) * b. `count` floats each.
struct PairwiseArgs {
  Pairwise operation;
  const float* a;
  const float* b;
  float* out;
  int64_t count;
};
void launch_pairwise(const PairwiseArgs& args, const Launch& how);

// y = W x in float32 for W as in a bundle: [panel][column][16 rows].
struct LinearArgs {
  const float* panels;
  int num_rows;
  int width;
  const float* x;  // [num_tokens, x_stride]
  int64_t x_stride;
  int num_tokens;
  float* out;  // [num_tokens, out_stride]
  int64_t out_stride;
};
void launch_linear(const LinearArgs& args, const Launch& how);

}  // namespace trtmc::cuda
