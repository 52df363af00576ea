// Weights on the way to and from where the kernels want them.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/product.h"

namespace trtmc::cuda {

// Panels of bf16 as in a bundle (tensor/packed_layout.h: pairs of columns, 16 rows each) into
// fragments as product.h wants them. Row i becomes row first_row + i * row_distance, so that two
// matrices can alternate. Words that no row has are left as they are.
struct PackFragmentsArgs {
  const uint32_t* from;  // [num_panels][pairs][16 rows]
  uint32_t* to;
  int num_panels;
  int pairs;
  int steps;  // Of `to`.
  int first_row;
  int row_distance;
};
void launch_pack_fragments(const PackFragmentsArgs& args, const Launch& how);

// The same of quantised panels, which are those of tensor/block_formats.h.
struct PackQuantizedArgs {
  WeightFormat format;  // kQ8 or kQ4
  const void* from;     // [num_panels][groups] of Q8Group or Q4Group
  void* to;
  int num_panels;
  int groups;
  int steps;  // Of `to`.
  int first_row;
  int row_distance;
};
void launch_pack_quantized(const PackQuantizedArgs& args, const Launch& how);

// Rows of the embedding. One of `fragments` and `panels` is set.
struct EmbedArgs {
  WeightFormat format;    // Of fragments.
  const void* fragments;  // As product.h says.
  const float* panels;    // f32: [panel][column][16 rows]
  int steps;              // Of fragments.
  int width;
  const int32_t* tokens;
  int num_tokens;
  float* out;  // [num_tokens, out_stride]
  int64_t out_stride;
};
void launch_embed(const EmbedArgs& args, const Launch& how);

}  // namespace trtmc::cuda
