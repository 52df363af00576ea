// Attention over a cache of bf16 or fp8 on the tensor cores, as attention.h says: a block has a
// tile of queries (as terms, see terms.h) and takes chunks of 64 positions. Each of its eight warps
// scores eight positions, softens an eighth of the rows, and mixes sixteen components.
//
// Keys and values of a chunk come by cp.async, those of fp8 through registers, which widen them to
// bf16; rows are 16 bytes longer than they need be, so that neither the scores' reads nor ldmatrix
// meet in a bank.
#pragma once

#include "backends/cuda/kernels/attention_tile.cuh"
#include "backends/cuda/kernels/copy_async.cuh"

namespace trtmc::cuda {

constexpr int kAttentionThreads = 256;
constexpr int kAttentionWarps = kAttentionThreads / static_cast<int>(kWarp);
constexpr int kTileRows = 16;
constexpr int kPadding = 8;  // Elements of bf16.
constexpr int kRowElements = kMostHeadDim + kPadding;
constexpr int kPositionSteps = kChunkPositions / kStepColumns;
constexpr int kMostSteps = kMostHeadDim / kStepColumns;
static_assert(kAttentionWarps * 8 == kChunkPositions &&
              kAttentionWarps * kStepColumns == kMostHeadDim);

// The block, or as much of it as attends.
__device__ __forceinline__ void sync_attention() { sync_threads_of<2>(kAttentionThreads); }

// kTiles tiles of 16 rows of queries, kTerms terms.
template <int kTiles, int kTerms>
struct AttentionShared {
  static constexpr int kRows = kTiles * kTileRows;
  uint4 q[kTiles][kMostSteps][kTerms][kWarp];
  uint4 weights[kTiles][kPositionSteps][kTerms][kWarp];
  __nv_bfloat16 keys[kChunkPositions][kRowElements];
  __nv_bfloat16 values[kChunkPositions][kRowElements];
  float scores[kRows][kChunkPositions + 8];
  float largest[kRows], sum[kRows];                // Of the chunk.
  float joined_largest[kRows], joined_sum[kRows];  // Of the chunks so far.
  float ours[kRows], theirs[kRows];                // What each of the two is scaled by.
  TileRows<kRows> rows;
  bool is_last;
};

// Of some tiles.
template <int kTiles, int kTerms>
struct AttentionSums {
  TermSums<kTerms> of[kTiles];

  __device__ __forceinline__ void add(int tile, int term, const uint4& a, uint2 b) {
    of[tile].add(term, a, b);
  }
  __device__ __forceinline__ void end_step(int step, int num_steps) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      of[tile].end_step(step);
      if (step == num_steps - 1) of[tile].end_segment();
    }
  }
};

template <int kTiles, int kTerms>
struct Attention : TileWork {
  static constexpr int kRows = kTiles * kTileRows;
  AttentionShared<kTiles, kTerms>& shared;

  // `rows`: of the tile, at most kRows.
  __device__ __forceinline__ Attention(const AttentionArgs& of, const QueryTile& query_tile,
                                       int rows, AttentionShared<kTiles, kTerms>& memory,
                                       int head = static_cast<int>(blockIdx.y))
      : TileWork(of, query_tile, head), shared(memory) {
    find_rows(shared.rows, rows, kAttentionThreads);
  }

  // Before the first chunk.
  __device__ __forceinline__ void forget() {
    for (int row = thread; row < kRows; row += kAttentionThreads) {
      shared.joined_largest[row] = -INFINITY;
      shared.joined_sum[row] = 0;
    }
  }

  __device__ __forceinline__ int steps() const { return args.head_dim / kStepColumns; }

  __device__ __forceinline__ void load_queries() {
    const int pairs = args.head_dim / 2;
    for (int i = thread; i < kRows * pairs; i += kAttentionThreads) {
      const int row = i / pairs;
      const int pair = i % pairs;
      uint32_t words[kTerms] = {};
      if (shared.rows.position[row] >= 0) {
        split<kTerms>(query(shared.rows, row, 2 * pair), query(shared.rows, row, 2 * pair + 1),
                      words);
      }
#pragma unroll
      for (int term = 0; term < kTerms; ++term) {
        *fragment_word(shared.q[row / kTileRows][pair / 8][term], row % kTileRows, pair % 8) =
            words[term];
      }
    }
  }

  // A chunk's keys or values up to position `end`, zeros behind it.
  __device__ __forceinline__ void copy_side(int chunk, int side, int end) {
    auto* to = side == 0 ? shared.keys : shared.values;
    const int parts = args.head_dim / 8;  // 16 bytes each.
    for (int i = thread; i < kChunkPositions * parts; i += kAttentionThreads) {
      const int row = i % kChunkPositions;
      const int part = i / kChunkPositions;
      const int position = chunk * kChunkPositions + row;
      const bool wanted = position < end;
      copy_async(reinterpret_cast<uint4*>(&to[row][part * 8]),
                 wanted ? component<KvType::kBF16>(side, position, part * 8) : args.cache.memory,
                 wanted);
    }
  }

  // The new key and value to the cache, and to where the chunk waits for them.
  template <KvType kType>
  __device__ __forceinline__ void store_new(const NewPart<kType>& part) {
    const int row = last_position % kChunkPositions;
    part.store(*this, [&](int side, int d, float x) {
      (side == 0 ? shared.keys : shared.values)[row][d] = __float2bfloat16_rn(x);
    });
  }
  static_assert(kMostHeadDim <= kAttentionThreads);

  __device__ __forceinline__ void score(int chunk) {
    // Without a way out of its loop, all that it reads is asked for at once.
    if (steps() == kMostSteps) {
      score_steps<true>(chunk);
    } else {
      score_steps<false>(chunk);
    }
  }

  template <bool kWhole>
  __device__ __forceinline__ void score_steps(int chunk) {
    AttentionSums<kTiles, kTerms> sums;
    const auto* key = reinterpret_cast<const uint32_t*>(shared.keys[warp() * 8 + lane() / 4]);
#pragma unroll
    for (int step = 0; step < kMostSteps; ++step) {
      if (!kWhole && step >= steps()) break;
      const uint2 b = make_uint2(key[step * 8 + lane() % 4], key[step * 8 + 4 + lane() % 4]);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int term = 0; term < kTerms; ++term)
          sums.add(t, term, shared.q[t][step][term][lane()], b);
      }
      sums.end_step(step, kWhole ? kMostSteps : steps());
    }
    const int column = warp() * 8 + lane() % 4 * 2;
    const int position = chunk * kChunkPositions + column;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int row = t * kTileRows + lane() / 4 + side * 8;
        const int own = shared.rows.position[row];
        *reinterpret_cast<float2*>(&shared.scores[row][column]) =
            make_float2(score_of(own, position, sums.of[t].total[2 * side]),
                        score_of(own, position + 1, sums.of[t].total[2 * side + 1]));
      }
    }
  }

  // Scores become weights; what was joined so far and this chunk get their factors.
  __device__ __forceinline__ void soften() {
#pragma unroll 2
    for (int row = warp(); row < kRows; row += kAttentionWarps) {
      const float2 pair = *reinterpret_cast<const float2*>(&shared.scores[row][lane() * 2]);
      const float largest = warp_max(fmaxf(pair.x, pair.y));
      const float base = largest == -INFINITY ? 0 : largest;
      const float a = power_of_two(__fsub_rn(pair.x, base));
      const float b = power_of_two(__fsub_rn(pair.y, base));
      const float sum = warp_sum(__fadd_rn(a, b));
      uint32_t words[kTerms];
      split<kTerms>(a, b, words);
#pragma unroll
      for (int term = 0; term < kTerms; ++term) {
        *fragment_word(shared.weights[row / kTileRows][lane() / 8][term], row % kTileRows,
                       lane() % 8) = words[term];
      }
      if (lane() == 0) {
        shared.largest[row] = largest;
        shared.sum[row] = sum;
        join(row, largest, sum);
      }
    }
  }

  __device__ __forceinline__ void join(int row, float largest, float sum) {
    if (sum == 0) {  // It sees nothing of the chunk.
      shared.ours[row] = 1;
      shared.theirs[row] = 0;
      return;
    }
    const float before = shared.joined_largest[row];
    const float after = fmaxf(before, largest);
    const float ours = power_of_two(__fsub_rn(before, after));
    const float theirs = power_of_two(__fsub_rn(largest, after));
    shared.joined_sum[row] = __fmaf_rn(sum, theirs, __fmul_rn(shared.joined_sum[row], ours));
    shared.joined_largest[row] = after;
    shared.ours[row] = ours;
    shared.theirs[row] = theirs;
  }

  // A warp's sixteen components of the chunk's mixture.
  __device__ __forceinline__ void mix(AttentionSums<kTiles, kTerms> (&sums)[2]) const {
#pragma unroll
    for (int step = 0; step < kPositionSteps; ++step) {
      uint2 first, second;
      load_transposed(&shared.values[step * kStepColumns + lane() % 16]
                                    [warp() * kStepColumns + lane() / 16 * 8],
                      first, second);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int term = 0; term < kTerms; ++term) {
          const uint4 a = shared.weights[t][step][term][lane()];
          sums[0].add(t, term, a, first);
          sums[1].add(t, term, a, second);
        }
      }
      sums[0].end_step(step, kPositionSteps);
      sums[1].end_step(step, kPositionSteps);
    }
  }

  __device__ __forceinline__ bool mixes() const { return warp() < steps(); }

  // Two neighbouring components of a finished row.
  __device__ __forceinline__ void store(int row, int d, float a, float b) const {
    if (shared.rows.position[row] < 0) return;
    a = __fdiv_rn(a, shared.joined_sum[row]);
    b = __fdiv_rn(b, shared.joined_sum[row]);
    const int column = shared.rows.head[row] * args.head_dim + d;
    if (args.out != nullptr) {
      float* out = args.out + shared.rows.token[row] * args.out_stride + column;
      out[0] = a;
      out[1] = b;
    } else {
      store_terms<kTerms>(args.out_terms, shared.rows.token[row], column, a, b);
    }
  }
};

// A chunk's keys or values on their way to shared memory: asked for up to position `end`, zeros
// behind it, and received at the latest when no more than kPending asked for later are on theirs.
template <KvType kType>
struct Side {
  template <typename Work>
  __device__ __forceinline__ void ask(Work& work, int chunk, int side, int end) {
    work.copy_side(chunk, side, end);
    commit_copies();
  }
  template <int kPending, typename Work>
  __device__ __forceinline__ void receive(Work&, int) const {
    wait_for_copies<kPending>();
  }
};

// A thread has two runs of one position. Leaves out the row of a new key and value, which
// Attention::store_new() writes.
template <>
struct Side<KvType::kFp8> {
  static constexpr int kRunValues = 16;
  static constexpr int kRunsAtOnce = kAttentionThreads / kChunkPositions;
  static constexpr int kRuns = kMostHeadDim / kRunValues / kRunsAtOnce;
  uint4 codes[kRuns];
  float scale;
  bool is_left_out;

  template <typename Work>
  __device__ __forceinline__ void ask(Work& work, int chunk, int side, int end) {
    const int position = chunk * kChunkPositions + work.thread % kChunkPositions;
    is_left_out = work.args.k != nullptr && position == work.last_position;
    scale = 0;
#pragma unroll
    for (uint4& run : codes) run = make_uint4(0, 0, 0, 0);
    if (position >= end) return;
    const std::byte* head = work.head_at(side, position);
    scale = work.scale_at(head, position);
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int d = (i * kRunsAtOnce + work.thread / kChunkPositions) * kRunValues;
      if (d >= work.args.head_dim) break;
      const int place = work.template place<KvType::kFp8>(position, d);
      codes[i] = __ldcg(reinterpret_cast<const uint4*>(head + place));
    }
  }
  template <int kPending, typename Work>
  __device__ __forceinline__ void receive(Work& work, int side) const {
    if (is_left_out) return;
    auto* row = (side == 0 ? work.shared.keys : work.shared.values)[work.thread % kChunkPositions];
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int d = (i * kRunsAtOnce + work.thread / kChunkPositions) * kRunValues;
      if (d >= work.args.head_dim) break;
      auto* to = reinterpret_cast<uint4*>(row + d);
      widen_fp8(codes[i], scale, to[0], to[1]);
    }
  }
};

}  // namespace trtmc::cuda
