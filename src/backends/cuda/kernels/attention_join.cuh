// How the chunks of a query, which blocks share, become its result: each chunk's mixture, largest
// score and sum are left in memory, and the last block to end joins them in rising order.
//
// What a chunk is scaled by hangs on the largest scores and the sums alone, so those come first,
// all at once; what is left to do one after the other is a product and a sum for each chunk, whose
// mixtures are asked for ahead.
#pragma once

#include "backends/cuda/kernels/attention_chunk.cuh"

namespace trtmc::cuda {

template <int kTerms>
class ChunkJoin {
 public:
  // `index`: the number of the tile and KV head.
  __device__ __forceinline__ ChunkJoin(Attention<1, kTerms>& work, int64_t index)
      : work_(work),
        first_chunk_(work.first_position / kChunkPositions),
        last_chunk_(work.last_position / kChunkPositions),
        floats_(work.args.cache.padded_dim + kPartialExtras),
        partial_(work.args.partial + index * work.args.num_chunks * kFewQueryRows * floats_),
        counter_(work.args.counters + index),
        row_(work.lane() / 4 % kFewQueryRows),
        d_(work.warp() * kStepColumns + work.lane() % 4 * 2) {}

  __device__ __forceinline__ int last_chunk() const { return last_chunk_; }
  __device__ __forceinline__ bool is_only_one() const { return first_chunk_ == last_chunk_; }

  // Of a lane whose row the tile has: a mixture's components d, d + 1, d + 8 and d + 9.
  __device__ __forceinline__ void leave(int chunk,
                                        const AttentionSums<1, kTerms> (&sums)[2]) const {
    if (work_.lane() >= kHalfWarp) return;
    float* to = row_of(chunk, row_);
    if (work_.mixes()) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        *reinterpret_cast<float2*>(to + d_ + n * 8) =
            make_float2(sums[n].of[0].total[0], sums[n].of[0].total[1]);
      }
    }
    if (work_.warp() == 0 && work_.lane() % 4 == 0) {
      to[work_.args.cache.padded_dim] = work_.shared.largest[row_];
      to[work_.args.cache.padded_dim + 1] = work_.shared.sum[row_];
    }
  }

  // Whether all others have left theirs. By all threads of the block that attend.
  __device__ __forceinline__ bool is_last_block() const {
    const int blocks = min(static_cast<int>(gridDim.x), last_chunk_ + 1 - first_chunk_);
    __threadfence();
    sync_attention();
    if (work_.thread == 0) work_.shared.is_last = atomicAdd(counter_, 1) == blocks - 1;
    sync_attention();
    if (work_.shared.is_last) __threadfence();
    return work_.shared.is_last;
  }

  // What all have left, joined, is the result.
  __device__ __forceinline__ void store() const {
    float largest = -INFINITY, sum = 0;
    float result[2][2] = {};
    for (int first = first_chunk_; first <= last_chunk_; first += kMostFactors) {
      const int count = min(kMostFactors, last_chunk_ + 1 - first);
      Mixtures mixtures;
      if (work_.mixes()) ask(mixtures, first, 0, count);
      sync_attention();
      load_weights(first, count);
      sync_attention();
      if (work_.warp() < kFewQueryRows) find_factors(count, largest);
      sync_attention();
      if (work_.mixes()) join_mixtures(mixtures, first, count, result, sum);
    }
    if (work_.warp() == 0 && work_.lane() % 4 == 0) work_.shared.joined_sum[row_] = sum;
    sync_attention();
    if (work_.thread == 0) *counter_ = 0;
    if (!work_.mixes() || work_.lane() >= kHalfWarp) return;
#pragma unroll
    for (int n = 0; n < 2; ++n) work_.store(row_, d_ + n * 8, result[n][0], result[n][1]);
  }

 private:
  static constexpr int kHalfWarp = static_cast<int>(kWarp) / 2;
  static_assert(kFewQueryRows * 4 == kHalfWarp, "the other half has the same rows");
  // How the chunks of a row are scaled, in the place of the chunk's keys and values.
  struct Factor {
    float ours, theirs;  // At first the largest score is in `theirs`.
    float sum;           // 0: it sees nothing of the chunk.
    float unused;
  };
  static constexpr int kMostFactors = 512;
  struct Mixtures {
    static constexpr int kCount = 8;
    float2 low[kCount], high[kCount];
  };
  using Shared = AttentionShared<1, kTerms>;
  static_assert(sizeof(Factor) * kMostFactors * kFewQueryRows <=
                sizeof(Shared::keys) + sizeof(Shared::values));

  // [chunk][row][values, largest, sum]
  __device__ __forceinline__ float* row_of(int chunk, int row) const {
    return partial_ + (int64_t{chunk} * kFewQueryRows + row) * floats_;
  }
  __device__ __forceinline__ Factor* factors(int row) const {
    return reinterpret_cast<Factor*>(work_.shared.keys) + row * kMostFactors;
  }

  __device__ __forceinline__ void load_weights(int first, int count) const {
    for (int i = work_.thread; i < count * kFewQueryRows; i += kAttentionThreads) {
      const int row = i % kFewQueryRows, chunk = i / kFewQueryRows;
      const float* from = row_of(first + chunk, row) + work_.args.cache.padded_dim;
      const float2 weights = __ldcg(reinterpret_cast<const float2*>(from));
      factors(row)[chunk] = {0, weights.x, weights.y, 0};
    }
  }

  // Of a row, by a warp. largest: of the chunks before, and then of these too.
  __device__ __forceinline__ void find_factors(int count, float& largest) const {
    Factor* of_row = factors(work_.warp());
    for (int first = 0; first < count; first += static_cast<int>(kWarp)) {
      const int chunk = first + work_.lane();
      const float own = chunk < count ? of_row[chunk].theirs : -INFINITY;
      float after = work_.lane() == 0 ? fmaxf(largest, own) : own;
#pragma unroll
      for (int distance = 1; distance < static_cast<int>(kWarp); distance *= 2) {
        const float other = __shfl_up_sync(kFullMask, after, distance);
        if (work_.lane() >= distance) after = fmaxf(after, other);
      }
      const float up = __shfl_up_sync(kFullMask, after, 1);
      const float before = work_.lane() == 0 ? largest : up;
      if (chunk < count) {
        of_row[chunk].ours = power_of_two(__fsub_rn(before, after));
        of_row[chunk].theirs = power_of_two(__fsub_rn(own, after));
      }
      largest = __shfl_sync(kFullMask, after, static_cast<int>(kWarp) - 1);
    }
  }

  // The halves of a warp ask for every other chunk from first + begin on.
  __device__ __forceinline__ void ask(Mixtures& mixtures, int first, int begin, int count) const {
    const int half = work_.lane() / kHalfWarp;
#pragma unroll
    for (int i = 0; i < Mixtures::kCount; ++i) {
      const int chunk = min(begin + 2 * i + half, count - 1);
      const float* from = row_of(first + chunk, row_) + d_;
      mixtures.low[i] = __ldcg(reinterpret_cast<const float2*>(from));
      mixtures.high[i] = __ldcg(reinterpret_cast<const float2*>(from + 8));
    }
  }

  // mixtures: of the first chunks, on their way.
  __device__ __forceinline__ void join_mixtures(Mixtures& mixtures, int first, int count,
                                                float (&result)[2][2], float& sum) const {
    for (int begin = 0; begin < count; begin += 2 * Mixtures::kCount) {
      if (begin > 0) ask(mixtures, first, begin, count);
#pragma unroll
      for (int i = 0; i < 2 * Mixtures::kCount; ++i) {
        const int lane = work_.lane() % kHalfWarp + i % 2 * kHalfWarp;
        const float2 low = given(mixtures.low[i / 2], lane);
        const float2 high = given(mixtures.high[i / 2], lane);
        if (begin + i >= count) continue;
        const Factor factor = factors(row_)[begin + i];
        if (factor.sum == 0) continue;
        sum = __fmaf_rn(factor.sum, factor.theirs, __fmul_rn(sum, factor.ours));
        result[0][0] = joined(factor.ours, result[0][0], factor.theirs, low.x);
        result[0][1] = joined(factor.ours, result[0][1], factor.theirs, low.y);
        result[1][0] = joined(factor.ours, result[1][0], factor.theirs, high.x);
        result[1][1] = joined(factor.ours, result[1][1], factor.theirs, high.y);
      }
    }
  }

  static __device__ __forceinline__ float2 given(float2 pair, int lane) {
    return make_float2(__shfl_sync(kFullMask, pair.x, lane), __shfl_sync(kFullMask, pair.y, lane));
  }

  Attention<1, kTerms>& work_;
  int first_chunk_, last_chunk_;
  int floats_;  // Of a row of a chunk.
  float* partial_;
  int32_t* counter_;
  int row_, d_;
};

}  // namespace trtmc::cuda
