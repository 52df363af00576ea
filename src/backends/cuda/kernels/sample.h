// The most likely token of each row of logits, and how likely: what greedy decoding needs, so that
// the logits stay on the device.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/launch.h"

namespace trtmc::cuda {

struct MostLikely {
  int32_t token;  // The smallest id of equals; a NaN counts as minus infinity.
  float logit;
  double exp_sum;  // Of exp(logit - the largest logit) over the vocabulary.
};

inline constexpr int kSampleParts = 32;  // Blocks that share a row.

struct MostLikelyArgs {
  const float* logits;  // [num_rows, stride]
  int64_t stride;
  int vocab_size;
  int num_rows;
  MostLikely* partial;  // [num_rows, kSampleParts]
  int32_t* counters;    // [num_rows], zero; zero again afterwards.
  MostLikely* out;      // [num_rows]
};
void launch_most_likely(const MostLikelyArgs& args, const Launch& how);

}  // namespace trtmc::cuda
