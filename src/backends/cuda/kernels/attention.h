// Softmax attention over the paged cache, of one layer.
//
// Whatever the step, a query sees its positions in chunks of kChunkPositions, cut at multiples of
// that; each chunk has its own maximum, sum and mixture, and they are joined in rising order. So a
// query's bits depend on nothing but itself and the keys and values before it.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/kv_cache.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/launch_plan.h"
#include "backends/cuda/kernels/terms.h"

namespace trtmc::cuda {

// Some queries of one sequence that share a KV head: rows of (token, head of the group), the head
// being the faster index.
struct QueryTile {
  int32_t sequence;
  int32_t first_token;  // Of the sequence, in the step.
  int32_t num_tokens;   // Of the sequence.
  int32_t first_row;    // Token first_row / group of the sequence, head first_row % group.
};

struct AttentionArgs {
  KvCacheView cache;
  int layer;
  int head_dim;  // At most kMostHeadDim.
  int num_heads;
  int sliding_window;  // 0: none.
  float scale;

  float* q;  // [num_tokens, stride]
  int64_t stride;
  const int32_t* positions;     // [num_tokens]
  const int32_t* block_tables;  // [sequences, table_stride]
  int table_stride;
  const QueryTile* tiles;
  int num_tiles;

  // Of a step with one token a sequence only: rotates q on its way in, and rotates and stores the
  // new key and value before they are read. Null: all that is done.
  const float* k;  // [num_tokens, stride]
  const float* v;
  int half;            // 0: this layer does not rotate.
  const float* table;  // [position][half][cos, sin]

  // One block for each chunk instead of one for all; the last to end joins them.
  int num_chunks;     // That there is room for. 0: one block for all.
  float* partial;     // [num_tiles, KV heads, num_chunks, kFewQueryRows, padded_dim +
                      // kPartialExtras]
  int32_t* counters;  // [num_tiles, KV heads], zero; zero again afterwards.

  float* out;  // [num_tokens, out_stride], or null:
  int64_t out_stride;
  TermBuffer out_terms;
  int num_terms;
};

inline constexpr int kPartialExtras = 4;  // Of a partial row, behind its values.

// What a device must give a block for attention_bf16.cu, and whether that takes such a cache.
int attention_bf16_shared_bytes();
inline bool attends_on_tensor_cores(const KvCacheView& cache, int head_dim, int shared_bytes) {
  return cache.type != KvType::kF32 && head_dim % kStepColumns == 0 &&
         attention_bf16_shared_bytes() <= shared_bytes;
}
// Once, before the first launch.
void prepare_attention_bf16(bool all_shared);
void launch_attention_bf16(AttentionArgs args, const Launch& how);

// The same of many queries by wgmma (compute capability 9.0), where the bits are the same.
inline bool attends_by_wgmma(const KvCacheView& cache, int head_dim, int num_terms,
                             const DeviceLimits& device) {
  return device.has_wgmma && cache.type != KvType::kF32 && num_terms == 1 &&
         (head_dim == 64 || head_dim == 128);
}
void prepare_attention_wgmma();
void launch_attention_wgmma(AttentionArgs args, const Launch& how);

// Tiles have kFewQueryRows rows where the step has one token a sequence (num_chunks > 0), else
// kManyQueryRows, kManyBf16QueryRows for attention_bf16, kManyWgmmaQueryRows for attention_wgmma.
void launch_attention(const AttentionArgs& args, const Launch& how);

}  // namespace trtmc::cuda
