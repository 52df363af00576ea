// Rotary angles: inverse frequencies with their scaling, and cos and sin at a position. The one
// definition for every backend.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/decoder_spec.h"

namespace trtmc {

struct RopeTable {
  std::vector<double> inverse_frequencies;  // [rotary_dim / 2]
  double attention_factor;                  // Multiplies cos and sin; 1 without YaRN.
};

RopeTable make_rope_table(const RopeSpec& rope);

// cos and sin of position * inverse_frequency, times the attention factor, computed in double:
// within 1e-6 at every position (float32 angles are off by 4e-3 at 70 000). cos, sin: [rotary_dim /
// 2].
void rope_cos_sin(const RopeTable& table, int64_t position, std::span<float> cos,
                  std::span<float> sin);

// YaRN's own attention factor when none is given: 0.1 ln(factor) + 1, or 1 for a factor up to 1;
// with both mscale and mscale_all_dim, the ratio of the two forms.
double yarn_attention_factor(double factor, double mscale, double mscale_all_dim);

}  // namespace trtmc
