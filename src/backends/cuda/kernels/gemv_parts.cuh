// What the kernels of up to 16 tokens share: how a warp stages the activations of its segment and
// multiplies them, and how a panel's segments become its sums.
#pragma once

#include "backends/cuda/kernels/barrier.cuh"
#include "backends/cuda/kernels/copy_async.cuh"
#include "backends/cuda/kernels/launch_plan.h"
#include "backends/cuda/kernels/product_output.cuh"

namespace trtmc::cuda {

constexpr int kPairSteps = 2 * kPieceSteps;  // Of activations that are staged at once.

__device__ __forceinline__ int segment_end(const ProductArgs& product, int segment) {
  return min(product.steps, (segment + 1) * product.segment);
}

// Barriers of those warps of a block that make sums.
constexpr int kNormBarrier = 1;

// ---- Activations

// What a warp stages of the activations: [step][term][half][token][4 words], of a pair of pieces.
template <int kTerms>
__device__ __forceinline__ void stage_terms(uint32_t* staged, const ProductArgs& product,
                                            int segment, int step, int lane) {
  const int tokens = product.num_tokens;
  const int halves = min(kPairSteps, segment_end(product, segment) - step) * kTerms * 2;
  const uint32_t* from =
      product.in.words + int64_t{step} * kTerms * 2 * kSmallestBlock * kHalfWords;
  for (int i = lane; i < halves * tokens; i += kStepLanes) {
    const int half = i / tokens;
    copy_async(reinterpret_cast<uint4*>(staged) + i,
               from + (half * kSmallestBlock + i - half * tokens) * kHalfWords, true);
  }
  commit_copies();
}

// The rows that are normed on the way in, where a segment is one pair: a lane has every 32nd pair
// of neighbouring columns of its warp's.
struct Norm {
  static constexpr int kPairs = kPairSteps * kStepWords / kStepLanes;
  float2 weights[kPairs];

  static __device__ __forceinline__ int column(int step, int i, int lane) {
    return step * kStepColumns + (i * kStepLanes + lane) * 2;
  }
  static __device__ __forceinline__ float2 pair_at(const float* from, int column, int width) {
    return make_float2(column < width ? from[column] : 0,
                       column + 1 < width ? from[column + 1] : 0);
  }

  __device__ __forceinline__ void load(const ProductArgs& product, const float* norm, int step,
                                       int lane) {
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      weights[i] = pair_at(norm, column(step, i, lane), product.width);
    }
  }

  // Rows to terms. `squares`: [tokens][parts], room for the block; all of it comes.
  template <int kTerms>
  __device__ __forceinline__ void stage(uint32_t* staged, const ProductArgs& product,
                                        float* squares, int step, int warp, int warps,
                                        int lane) const {
    const int tokens = product.num_tokens;
    const int parts = num_norm_parts(product.width);
    for (int token = 0; token < tokens; ++token) {
      for (int i = warp; i < parts; i += warps) {
        squares[token * parts + i] = part_squares(row_of(product, token), product.width, i, lane);
      }
    }
    sync_threads_of<kNormBarrier>(warps * kStepLanes);
    for (int token = 0; token < tokens; ++token) {
      const float inverse = inverse_rms(squares + token * parts, product.width, product.eps);
      const float* x = row_of(product, token);
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        const float2 values = pair_at(x, column(step, i, lane), product.width);
        uint32_t words[kTerms];
        split<kTerms>(normed(values.x, inverse, weights[i].x),
                      normed(values.y, inverse, weights[i].y), words);
        const int pair = i * kStepLanes + lane;
#pragma unroll
        for (int term = 0; term < kTerms; ++term) {
          const int half = (pair / kStepWords * kTerms + term) * 2 + pair % kStepWords / kHalfWords;
          staged[(half * tokens + token) * kHalfWords + pair % kHalfWords] = words[term];
        }
      }
    }
    __syncwarp();
  }

 private:
  static __device__ __forceinline__ const float* row_of(const ProductArgs& product, int token) {
    const int row = product.rows == nullptr ? token : product.rows[token];
    return product.x + int64_t{row} * product.x_stride;
  }
};

// ---- Products

// The right sides of kSteps steps, as a lane feeds them to the tensor core, from what is staged
// from step `first` on. Columns without a token repeat another's: nobody looks at their sums.
template <int kTerms, int kTiles, int kSteps>
struct Fragments {
  uint2 of[kSteps][kTiles][kTerms];

  __device__ __forceinline__ void load(const uint32_t* staged, int first, int tokens, int lane) {
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const int token = min(tile * 8 + lane / 4, tokens - 1);
#pragma unroll
        for (int term = 0; term < kTerms; ++term) {
          of[i][tile][term] = words(staged, ((first + i) * kTerms + term) * 2, tokens, token, lane);
        }
      }
    }
  }
  // Of up to two tokens, their three terms side by side where the other tokens would be: term i of
  // token t in column 2 i + t.
  __device__ __forceinline__ void load_packed(const uint32_t* staged, int first, int tokens,
                                              int lane) {
    const int term = min(lane / 4 / 2, 2);
    const int token = min(lane / 4 % 2, tokens - 1);
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      of[i][0][0] = words(staged, ((first + i) * 3 + term) * 2, tokens, token, lane);
    }
  }

 private:
  static __device__ __forceinline__ uint2 words(const uint32_t* staged, int half, int tokens,
                                                int token, int lane) {
    const uint32_t* from = staged + (half * tokens + token) * kHalfWords + lane % 4;
    return make_uint2(from[0], from[tokens * kHalfWords]);
  }
};

// Adds kSteps steps, whose right sides begin at step kFirst of `right`, to `sums`.
template <int kFirst, int kTerms, int kTiles, int kSteps, int kLoaded>
__device__ __forceinline__ void multiply_steps(TermSums<kTerms> (&sums)[kTiles],
                                               const uint4 (&weights)[kSteps],
                                               const Fragments<kTerms, kTiles, kLoaded>& right) {
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int term = 0; term < kTerms; ++term) {
        sums[tile].add(term, weights[i], right.of[kFirst + i][tile][term]);
      }
      sums[tile].end_step(i);
    }
  }
}

// The same of packed terms. The columns do not know of each other, so the bits are the same. Lanes
// of columns 0 and 1 have the first term's sums, and those alone are promoted.
template <int kFirst, int kSteps, int kLoaded>
__device__ __forceinline__ void multiply_steps_packed(TermSums<1>& sums, float (&promoted)[4],
                                                      const uint4 (&weights)[kSteps],
                                                      const Fragments<1, 1, kLoaded>& right,
                                                      int lane) {
  const bool promotes = lane % 4 == 0;
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    sums.add(0, weights[i], right.of[kFirst + i][0][0]);
    if (i % kExactSteps == kExactSteps - 1) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (promotes) {
          promoted[j] = __fadd_rn(promoted[j], sums.total[j]);
          sums.total[j] = 0;
        }
      }
    }
  }
}

// The other terms' sums, from the lanes that have them, to those of the first.
__device__ __forceinline__ void end_packed_segment(TermSums<1>& sums, const float (&promoted)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float second = __shfl_down_sync(kFullMask, sums.total[j], 1);
    const float third = __shfl_down_sync(kFullMask, sums.total[j], 2);
    sums.total[j] = __fadd_rn(promoted[j], __fadd_rn(second, third));
  }
}

// The sums of a segment, to where the block adds them up: [segment][token][row].
template <int kTerms, int kTiles>
__device__ __forceinline__ void keep(const TermSums<kTerms> (&sums)[kTiles], float* partial,
                                     int segment, int tokens, int lane) {
  float* to = partial + segment * tokens * kPanelRows + lane / 4 * 2;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const int token = tile * 8 + lane % 4 * 2;
    if (token < tokens) {
      *reinterpret_cast<float2*>(to + token * kPanelRows) =
          make_float2(sums[tile].total[0], sums[tile].total[2]);
    }
    if (token + 1 < tokens) {
      *reinterpret_cast<float2*>(to + (token + 1) * kPanelRows) =
          make_float2(sums[tile].total[1], sums[tile].total[3]);
    }
  }
}

// A panel's sums: segment after segment, four rows of a token a lane of one warp.
template <int kTerms>
__device__ __forceinline__ void finish_panel(const float* partial, const ProductArgs& product,
                                             int panel, int lane) {
  constexpr int kQuads = kPanelRows / 4;
  const int tokens = product.num_tokens;
  const int segments = (product.steps + product.segment - 1) / product.segment;
  for (int i = lane; i < kQuads * tokens; i += kStepLanes) {
    const auto* from = reinterpret_cast<const float4*>(partial) + i;
    float4 total = *from;
    for (int first = 1; first < segments; first += kMostSegments) {
#pragma unroll
      for (int i = 0; i < kMostSegments; ++i) {
        if (first + i < segments) total = added(total, from[(first + i) * tokens * kQuads]);
      }
    }
    finish_four<kTerms>(product, i / kQuads, panel * kPanelRows + i % kQuads * 4, total);
  }
}

// What those that make a panel's sums and the warp that finishes them say to each other. Who makes
// sums does nothing else: the next panel would have to wait for it. Sums of some panels have room;
// they are used in turn.
struct TurnBarriers {
  uint64_t summed[kMostGemvTurns], joined[kMostGemvTurns];

  // By one warp, before the others use them. `warps`: that make sums.
  __device__ __forceinline__ void init(int warps, int lane) {
    if (lane < kMostGemvTurns) {
      init_barrier(&summed[lane], warps);
      init_barrier(&joined[lane], 1);
    }
  }
};

// Whose turn it is, and how often turns have come round.
struct Turn {
  int turn = 0;
  int parity = 0;
  __device__ __forceinline__ void advance(int turns) {
    if (++turn == turns) {
      turn = 0;
      parity ^= 1;
    }
  }
};

// For a warp that makes sums: before it writes where those of another panel were, and after.
__device__ __forceinline__ void begin_sums(TurnBarriers& barriers, const Turn& turn) {
  wait_for(&barriers.joined[turn.turn], turn.parity ^ 1);
}
__device__ __forceinline__ void end_sums(TurnBarriers& barriers, const Turn& turn, int lane) {
  __syncwarp();
  if (lane == 0) arrive(&barriers.summed[turn.turn]);
}

// ---- Sums of a warp over the segment that it is in

template <int kTerms, int kTiles, bool kPacked>
struct SegmentSums {
  static constexpr int kSumTerms = kPacked ? 1 : kTerms;
  template <int kSteps>
  using Right = Fragments<kSumTerms, kTiles, kSteps>;
  TermSums<kSumTerms> of[kTiles];
  float promoted[4];

  template <int kSteps>
  static __device__ __forceinline__ void load(Right<kSteps>& right, const uint32_t* staged,
                                              int first, int tokens, int lane) {
    if constexpr (kPacked) {
      right.load_packed(staged, first, tokens, lane);
    } else {
      right.load(staged, first, tokens, lane);
    }
  }
  // Right sides from step kFirst of `right` on.
  template <int kFirst, int kSteps, int kLoaded>
  __device__ __forceinline__ void add(const uint4 (&weights)[kSteps], const Right<kLoaded>& right,
                                      int lane) {
    if constexpr (kPacked) {
      multiply_steps_packed<kFirst>(of[0], promoted, weights, right, lane);
    } else {
      multiply_steps<kFirst>(of, weights, right);
    }
  }
  // Of what is staged from step `first` on.
  template <int kSteps>
  __device__ __forceinline__ void add_staged(const uint4 (&weights)[kSteps], const uint32_t* staged,
                                             int first, int tokens, int lane) {
    Right<kSteps> right;
    load(right, staged, first, tokens, lane);
    add<0>(weights, right, lane);
  }
  __device__ __forceinline__ void end() {
    if constexpr (kPacked) {
      end_packed_segment(of[0], promoted);
    } else {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) of[tile].end_segment();
    }
  }
  __device__ __forceinline__ void clear() { *this = {}; }
};

// For a warp that finishes panels, when all have summed.
template <int kTerms>
__device__ __forceinline__ void join_sums(TurnBarriers& barriers, const Turn& turn,
                                          const float* partial, const ProductArgs& product,
                                          int panel, int lane) {
  wait_for(&barriers.summed[turn.turn], turn.parity);
  finish_panel<kTerms>(partial, product, panel, lane);
  __syncwarp();
  if (lane == 0) arrive(&barriers.joined[turn.turn]);
}

}  // namespace trtmc::cuda
