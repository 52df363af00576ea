// What a block of either attention kernel works on: a tile of queries and a KV head.
#pragma once

#include <cmath>

#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/rope.cuh"

namespace trtmc::cuda {

// Over bf16, scores are kept as powers of two, which the device takes in one instruction.
constexpr float kLog2E = 1.4426950408889634F;
__device__ __forceinline__ float power_of_two(float exponent) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
  return power;
}

// What a row has so far and what a chunk adds to it, each with its factor.
__device__ __forceinline__ float joined(float ours, float value, float theirs, float of_chunk) {
  return __fmaf_rn(theirs, of_chunk, __fmul_rn(ours, value));
}

// Whose query each row of a tile is; in shared memory.
template <int kRows>
struct TileRows {
  int32_t position[kRows];  // -1: no such row.
  int32_t token[kRows];     // Of the step.
  int32_t head[kRows];
};

struct TileWork {
  const AttentionArgs& args;
  QueryTile tile;
  int kv_head;
  int group;  // Query heads of a KV head.
  int thread;
  int first_position = 0, last_position = 0;  // That some row of the tile sees.

  __device__ __forceinline__ TileWork(const AttentionArgs& of, const QueryTile& query_tile,
                                      int head = static_cast<int>(blockIdx.y))
      : args(of),
        tile(query_tile),
        kv_head(head),
        group(of.num_heads / of.cache.num_kv_heads),
        thread(static_cast<int>(threadIdx.x)) {}

  __device__ __forceinline__ int lane() const { return thread % static_cast<int>(kWarp); }
  __device__ __forceinline__ int warp() const { return thread / static_cast<int>(kWarp); }

  // Where the keys (side 0) or values (side 1) of a position's block begin in the cache.
  __device__ __forceinline__ std::byte* head_at(int side, int position) const {
    const int block = args.block_tables[int64_t{tile.sequence} * args.table_stride +
                                        position / KvCacheView::kBlockSize];
    return args.cache.head(block, args.layer, side, kv_head);
  }
  // Where a component of a position lies from there.
  template <KvType kType>
  __device__ __forceinline__ int place(int position, int d) const {
    return args.cache.place<kType>(position % KvCacheView::kBlockSize, d);
  }
  template <KvType kType>
  __device__ __forceinline__ std::byte* component(int side, int position, int d) const {
    return head_at(side, position) + place<kType>(position, d);
  }
  // Of fp8. `head`: head_at() it.
  __device__ __forceinline__ float scale_at(const std::byte* head, int position) const {
    const int place = args.cache.scale_place(position % KvCacheView::kBlockSize);
    return __ldcg(reinterpret_cast<const float*>(head + place));
  }

  // Fills `rows`, of which the tile has `most` at most, by all of the block's `threads`. Reads
  // nothing that a kernel in front writes.
  template <int kRows>
  __device__ __forceinline__ void find_rows(TileRows<kRows>& rows, int most, int threads) {
    const int num_rows = min(most, tile.num_tokens * group - tile.first_row);
    for (int row = thread; row < kRows; row += threads) {
      const int of_sequence = tile.first_row + row;
      const int token = tile.first_token + of_sequence / group;
      rows.position[row] = row < num_rows ? args.positions[token] : -1;
      rows.token[row] = token;
      rows.head[row] = kv_head * group + of_sequence % group;
    }
    find_range(num_rows);
  }

  // Which positions the tile's `num_rows` rows see.
  __device__ __forceinline__ void find_range(int num_rows) {
    last_position = args.positions[tile.first_token + (tile.first_row + num_rows - 1) / group];
    if (args.sliding_window > 0) {
      const int first = args.positions[tile.first_token + tile.first_row / group];
      first_position = max(0, first - args.sliding_window + 1);
    }
  }

  // Component `d` of a head at `position`, turned if this step rotates what it reads.
  __device__ __forceinline__ float turned(const float* head, int d, int position) const {
    if (args.k == nullptr || args.half == 0) return head[d];
    const auto* rotations = reinterpret_cast<const float2*>(args.table);
    return rotated_component(head, d, args.half, rotations + int64_t{position} * args.half);
  }

  template <int kRows>
  __device__ __forceinline__ float query(const TileRows<kRows>& rows, int row, int d) const {
    const float* head =
        args.q + rows.token[row] * args.stride + int64_t{rows.head[row]} * args.head_dim;
    return turned(head, d, rows.position[row]);
  }

  // Component `d` of the key or value of the step's only token of this sequence.
  __device__ __forceinline__ float new_component(int side, int d) const {
    const int64_t start = tile.first_token * args.stride + int64_t{kv_head} * args.head_dim;
    return side == 0 ? turned(args.k + start, d, last_position) : args.v[start + d];
  }

  __device__ __forceinline__ bool sees(int own, int position) const {
    return position <= own && (args.sliding_window == 0 || position > own - args.sliding_window);
  }
  // `scaled` product of a query at `own` with the key at `position`, or minus infinity.
  __device__ __forceinline__ float score_of(int own, int position, float product) const {
    return sees(own, position) ? __fmul_rn(product, args.scale) : -INFINITY;
  }
};

// What a thread has of that key and value, on its way from the step to the cache: one component of
// both.
template <KvType kType>
struct NewPart {
  float key = 0, value = 0;

  __device__ __forceinline__ void load(const TileWork& work) {
    if (work.thread >= work.args.head_dim) return;
    key = work.new_component(0, work.thread);
    value = work.new_component(1, work.thread);
  }
  // sink(side, d, x): what is kept.
  template <typename Sink>
  __device__ __forceinline__ void store(const TileWork& work, Sink sink) const {
    const int d = work.thread;
    if (d >= work.args.head_dim) return;
    store_kv<kType>(work.component<kType>(0, work.last_position, d), key);
    store_kv<kType>(work.component<kType>(1, work.last_position, d), value);
    sink(0, d, key);
    sink(1, d, value);
  }
};

// Of fp8 the first warp has the key and the second the value.
template <>
struct NewPart<KvType::kFp8> {
  float x[kHeadParts] = {};

  __device__ __forceinline__ void load(const TileWork& work) {
    const int side = work.warp();
    if (side > 1) return;
#pragma unroll
    for (int i = 0; i < kHeadParts; ++i) {
      const int d = i * static_cast<int>(kWarp) + work.lane();
      if (d < work.args.head_dim) x[i] = work.new_component(side, d);
    }
  }
  template <typename Sink>
  __device__ __forceinline__ void store(const TileWork& work, Sink sink) const {
    const int side = work.warp();
    if (side > 1) return;
    store_fp8(work.args.cache, work.head_at(side, work.last_position),
              work.last_position % KvCacheView::kBlockSize, work.args.head_dim, work.lane(), x,
              [&](int d, float value) { sink(side, d, value); });
  }
};

}  // namespace trtmc::cuda
