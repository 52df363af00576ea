// Rotation by position, and the way of new keys and values into the cache.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/kv_cache.h"
#include "backends/cuda/kernels/launch.h"

namespace trtmc::cuda {

// Rotates each head in place: pairs (i, i + half), as Transformers does.
struct RopeArgs {
  float* x;  // [num_tokens, stride]
  int64_t stride;
  int num_tokens;
  int num_heads;
  int head_dim;
  int half;
  const float* table;        // [position][half][cos, sin]
  const int32_t* positions;  // [num_tokens]
};
void launch_rope(const RopeArgs& args, const Launch& how);

struct StoreArgs {
  KvCacheView cache;
  int layer;
  int head_dim;
  const float* k;  // [num_tokens, stride]
  const float* v;
  int64_t stride;
  int num_tokens;
  const int32_t* positions;        // [num_tokens]
  const int32_t* token_sequences;  // [num_tokens]
  const int32_t* block_tables;     // [sequences, table_stride]
  int table_stride;
};
void launch_store(const StoreArgs& args, const Launch& how);

}  // namespace trtmc::cuda
