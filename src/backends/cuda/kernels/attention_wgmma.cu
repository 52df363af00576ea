// Attention of many queries over a cache of bf16 by wgmma, as attention.h says, with one term. A
// block has 128 rows of queries, 64 a warp group, and walks the chunks of 64
// positions; one warp group fetches them ahead (bulk copies that barriers count). Scores stay in
// registers and become, as they lie there, the left side of the product with the values. While one
// group works on its scores, the tensor core works for the other.
//
// Sums, maxima and joins are those of attention_bf16.cu, in the same order: a lane has of a row the
// columns 8 j + 2 t and + 1, there lane 4 j + t had them.
#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/attention_tile.cuh"
#include "backends/cuda/kernels/hopper.cuh"

namespace trtmc::cuda {
namespace {

constexpr int kGroups = 2;
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kThreads = kConsumers + kGroupThreads;
constexpr int kConsumerWarps = kConsumers / static_cast<int>(kWarp);
constexpr int kGroupRows = 64;
constexpr int kStages = 3;
[[maybe_unused]] constexpr int kPieceBytes = 16;  // Eight components of a position.
constexpr int kBlocks = kChunkPositions / KvCacheView::kBlockSize;
[[maybe_unused]] constexpr int kSpareRegisters = 24, kTakenRegisters = 240;
static_assert(kGroups * kGroupRows == kManyWgmmaQueryRows);

template <int kHeadDim>
struct Stages {
  static constexpr int kPieces = kHeadDim / 8;
  struct Stage {
    uint4 keys[kPieces][kChunkPositions];
    uint4 values[kBlocks][kPieces][KvCacheView::kBlockSize];
  };
  Stage stage[kStages];
  // Of each warp, as it takes them. In registers that outlive the loop they would crowd the sums,
  // and ptxas 13.0 was seen to take them for others where half as many were needed.
  uint4 queries[kConsumerWarps][kHeadDim / kStepColumns][kWarp];
};

#ifdef TRTMC_HAS_WGMMA

struct Barriers {
  uint64_t keys[kStages], values[kStages], empty[kStages];
};

// A chunk's stage, and how often its barriers have turned.
struct Place {
  int stage = 0;
  int parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// One of the four warps that fetch: a quarter of each chunk's pieces.
template <int kHeadDim>
__device__ __forceinline__ void fetch(const TileWork& work, Stages<kHeadDim>& stages,
                                      Barriers& barriers, int first_chunk, int last_chunk,
                                      int warp) {
  using Of = Stages<kHeadDim>;
  constexpr int kShare = Of::kPieces / 4;
  constexpr int kBlockSize = KvCacheView::kBlockSize;
  const auto* cache = static_cast<const __nv_bfloat16*>(work.args.cache.memory);
  Place place;
  for (int chunk = first_chunk; chunk <= last_chunk; ++chunk) {
    auto& stage = stages.stage[place.stage];
    wait_for(&barriers.empty[place.stage], place.parity ^ 1);
    const auto from = [&](int side, int block) {
      return cache +
             work.element(side, chunk * kChunkPositions + block * kBlockSize, warp * kShare * 8);
    };
    // Blocks behind the last position need not exist.
    const int blocks = min(kBlocks, work.last_position / kBlockSize + 1 - chunk * kBlocks);
    const int bytes = blocks * kShare * kBlockSize * kPieceBytes;
    arrive_expecting(&barriers.keys[place.stage], bytes);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      if (block >= blocks) break;
      const auto* keys = from(0, block);
#pragma unroll
      for (int i = 0; i < kShare; ++i) {
        copy_bulk(&stage.keys[warp * kShare + i][block * kBlockSize], keys + i * kBlockSize * 8,
                  kBlockSize * kPieceBytes, &barriers.keys[place.stage]);
      }
    }
    arrive_expecting(&barriers.values[place.stage], bytes);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      if (block >= blocks) break;
      copy_bulk(stage.values[block][warp * kShare], from(1, block),
                kShare * kBlockSize * kPieceBytes, &barriers.values[place.stage]);
    }
    place.advance();
  }
}

// Two of the rows of a lane: 2 sides, g and g + 8 of its warp's sixteen.
struct Row {
  int own;  // Its position; -1: no such row.
  int token, head;
  float largest = -INFINITY;
  float sum = 0;
};

template <int kHeadDim>
struct Consumer {
  static constexpr int kSteps = kHeadDim / kStepColumns;
  static constexpr int kScores = kChunkPositions / 2;
  static constexpr int kMixed = kHeadDim / 2;
  static constexpr int kPositionSteps = kChunkPositions / kStepColumns;
  const TileWork& work;
  Stages<kHeadDim>& stages;
  Barriers& barriers;
  Row rows[2];
  uint4 (*queries)[kWarp];  // [kSteps]
  int lane;

  __device__ __forceinline__ void load_queries() {
    const AttentionArgs& args = work.args;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Row& row = rows[i % 2];
        const int d = step * kStepColumns + i / 2 * 8 + lane % 4 * 2;
        float2 pair = make_float2(0, 0);
        if (row.own >= 0) {
          pair = *reinterpret_cast<const float2*>(args.q + row.token * args.stride +
                                                  int64_t{row.head} * kHeadDim + d);
        }
        uint32_t word[1];
        split<1>(pair.x, pair.y, word);
        words[i] = word[0];
      }
      queries[step][lane] = make_uint4(words[0], words[1], words[2], words[3]);
    }
    __syncwarp();
  }

  __device__ __forceinline__ void start_scores(float (&scores)[kScores], const Place& place) const {
    uint4 q[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) q[step] = queries[step][lane];
    wait_for(&barriers.keys[place.stage], place.parity);
    begin_products();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Wgmma<kChunkPositions>::multiply_add(
          scores, q[step],
          matrix_at(stages.stage[place.stage].keys[step * 2], kChunkPositions * kPieceBytes,
                    8 * kPieceBytes),
          step > 0);
    }
    commit_products();
  }

  __device__ __forceinline__ void start_mixture(float (&mixed)[kMixed],
                                                const uint4 (&weights)[kPositionSteps],
                                                const Place& place) const {
    constexpr int kBlockSteps = KvCacheView::kBlockSize / kStepColumns;
    begin_products();
#pragma unroll
    for (int step = 0; step < kPositionSteps; ++step) {
      const auto& values = stages.stage[place.stage].values[step / kBlockSteps];
      Wgmma<kHeadDim>::template multiply_add<true>(
          mixed, weights[step],
          matrix_at(&values[0][step % kBlockSteps * kStepColumns], 8 * kPieceBytes,
                    KvCacheView::kBlockSize * kPieceBytes),
          step > 0);
    }
    commit_products();
  }

  // Scores become weights; `ours` and `theirs` are what the rows so far and this chunk are scaled
  // by.
  __device__ __forceinline__ void soften(float (&scores)[kScores], uint4 (&weights)[kPositionSteps],
                                         float (&ours)[2], float (&theirs)[2], int chunk) {
    const int first = chunk * kChunkPositions;
    const AttentionArgs& args = work.args;
#pragma unroll
    for (float& score : scores) score = __fmul_rn(score, args.scale);
    const auto sees_all = [&](const Row& row) {
      return first + kChunkPositions - 1 <= row.own &&
             (args.sliding_window == 0 || first > row.own - args.sliding_window);
    };
    if (__any_sync(kFullMask, !sees_all(rows[0]) || !sees_all(rows[1]))) {
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        const int position = first + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (!work.sees(rows[i / 2 % 2].own, position)) scores[i] = -INFINITY;
      }
    }
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      Row& row = rows[side];
      float largest = -INFINITY;
#pragma unroll
      for (int j = 0; j < kScores / 4; ++j) {
        largest = fmaxf(largest, fmaxf(scores[4 * j + side * 2], scores[4 * j + side * 2 + 1]));
      }
      largest = fmaxf(largest, __shfl_xor_sync(kFullMask, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kFullMask, largest, 2));
      const float base = largest == -INFINITY ? 0 : largest;
      float sums[kScores / 4];
#pragma unroll
      for (int j = 0; j < kScores / 4; ++j) {
        float& a = scores[4 * j + side * 2];
        float& b = scores[4 * j + side * 2 + 1];
        a = power_of_two(__fsub_rn(a, base));
        b = power_of_two(__fsub_rn(b, base));
        sums[j] = __fadd_rn(a, b);
      }
#pragma unroll
      for (int distance = kScores / 8; distance > 0; distance /= 2) {
#pragma unroll
        for (int j = 0; j < distance; ++j) sums[j] = __fadd_rn(sums[j], sums[j + distance]);
      }
      sums[0] = __fadd_rn(sums[0], __shfl_xor_sync(kFullMask, sums[0], 2));
      sums[0] = __fadd_rn(sums[0], __shfl_xor_sync(kFullMask, sums[0], 1));
      ours[side] = 1;
      theirs[side] = 0;
      if (sums[0] != 0) {  // Else it sees nothing of the chunk.
        const float after = fmaxf(row.largest, largest);
        ours[side] = power_of_two(__fsub_rn(row.largest, after));
        theirs[side] = power_of_two(__fsub_rn(largest, after));
        row.sum = __fmaf_rn(sums[0], theirs[side], __fmul_rn(row.sum, ours[side]));
        row.largest = after;
      }
    }
#pragma unroll
    for (int step = 0; step < kPositionSteps; ++step) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = step * 8 + i / 2 * 4 + i % 2 * 2;
        uint32_t word[1];
        split<1>(scores[at], scores[at + 1], word);
        words[i] = word[0];
      }
      weights[step] = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }

  // The step has not written the last chunk's end: what lies there weighs nothing, and must not be
  // infinite either.
  __device__ __forceinline__ void clear_end(const Place& place, int end, int thread) const {
    const int last = end % kChunkPositions;
    if (last == 0) return;
    auto& values = stages.stage[place.stage].values;
    for (int i = thread; i < kChunkPositions * kHeadDim / 8; i += kConsumers) {
      const int position = i % kChunkPositions;
      if (position < last) continue;
      values[position / KvCacheView::kBlockSize][i / kChunkPositions]
            [position % KvCacheView::kBlockSize] = make_uint4(0, 0, 0, 0);
    }
    fence_for_products();
    sync_threads_at<kConsumers>(1);
  }

  __device__ __forceinline__ void store(const float (&result)[kMixed]) const {
    const AttentionArgs& args = work.args;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const Row& row = rows[side];
      if (row.own < 0) continue;
#pragma unroll
      for (int j = 0; j < kHeadDim / 8; ++j) {
        const float a = __fdiv_rn(result[4 * j + side * 2], row.sum);
        const float b = __fdiv_rn(result[4 * j + side * 2 + 1], row.sum);
        const int column = row.head * kHeadDim + j * 8 + lane % 4 * 2;
        if (args.out != nullptr) {
          float* out = args.out + row.token * args.out_stride + column;
          out[0] = a;
          out[1] = b;
        } else {
          store_terms<1>(args.out_terms, row.token, column, a, b);
        }
      }
    }
  }

  __device__ __forceinline__ void attend(int first_chunk, int last_chunk, int thread) {
    const int end = work.last_position + 1;
    float scores[kScores], mixed[kMixed], result[kMixed];
    float ours[2], theirs[2];
    uint4 weights[kPositionSteps];
#pragma unroll
    for (int i = 0; i < kMixed; ++i) result[i] = 0;
    Place place;
    for (int chunk = first_chunk; chunk <= last_chunk; ++chunk) {
      start_scores(scores, place);
      wait_for_products<0>();
      receive(scores);
      soften(scores, weights, ours, theirs, chunk);
      wait_for(&barriers.values[place.stage], place.parity);
      if (chunk == last_chunk) clear_end(place, end, thread);
      start_mixture(mixed, weights, place);
      wait_for_products<0>();
      receive(mixed);
      __syncwarp();
      if (lane == 0) arrive(&barriers.empty[place.stage]);
      place.advance();
#pragma unroll
      for (int i = 0; i < kMixed; ++i) {
        const int side = i / 2 % 2;
        result[i] = joined(ours[side], result[i], theirs[side], mixed[i]);
      }
    }
    store(result);
  }
};

#endif

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads, 1)
    attend_wgmma_kernel(const __grid_constant__ AttentionArgs args) {
#ifdef TRTMC_HAS_WGMMA
  extern __shared__ __align__(128) uint4 memory[];
  __shared__ Barriers barriers;
  auto& stages = *reinterpret_cast<Stages<kHeadDim>*>(memory);
  const int thread = static_cast<int>(threadIdx.x);
  constexpr int kWarpThreads = static_cast<int>(kWarp);
  release_successors();
  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) {
      init_barrier(&barriers.keys[i], 4);
      init_barrier(&barriers.values[i], 4);
      init_barrier(&barriers.empty[i], kConsumerWarps);
    }
    fence_barriers();
  }
  wait_for_predecessors();
  __syncthreads();

  // The longest first, so that the last blocks are short.
  TileWork work(args, args.tiles[gridDim.x - 1 - blockIdx.x]);
  const int num_rows =
      min(kManyWgmmaQueryRows, work.tile.num_tokens * work.group - work.tile.first_row);
  work.find_range(num_rows);
  const int first_chunk = work.first_position / kChunkPositions;
  const int last_chunk = work.last_position / kChunkPositions;
  if (thread >= kConsumers) {
    give_registers<kSpareRegisters>();
    if (thread % kWarpThreads == 0) {
      fetch<kHeadDim>(work, stages, barriers, first_chunk, last_chunk,
                      (thread - kConsumers) / kWarpThreads);
    }
  } else {
    take_registers<kTakenRegisters>();
    Consumer<kHeadDim> consumer{
        work, stages, barriers, {}, stages.queries[thread / kWarpThreads], thread % kWarpThreads};
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int row = thread / kWarpThreads * 16 + thread % kWarpThreads / 4 + side * 8;
      const int of_sequence = work.tile.first_row + row;
      Row& at = consumer.rows[side];
      at.token = work.tile.first_token + of_sequence / work.group;
      at.head = work.kv_head * work.group + of_sequence % work.group;
      at.own = row < num_rows ? args.positions[at.token] : -1;
    }
    consumer.load_queries();
    consumer.attend(first_chunk, last_chunk, thread);
  }
#endif
}

using Kernel = void (*)(AttentionArgs);

Kernel kernel_of(int head_dim) {
  return head_dim == 64 ? attend_wgmma_kernel<64> : attend_wgmma_kernel<128>;
}
size_t shared_bytes(int head_dim) {
  return head_dim == 64 ? sizeof(Stages<64>) : sizeof(Stages<128>);
}

}  // namespace

void launch_attention_wgmma(AttentionArgs args, const Launch& how) {
  args.scale *= kLog2E;
  launch(
      kernel_of(args.head_dim),
      dim3(static_cast<unsigned>(args.num_tiles), static_cast<unsigned>(args.cache.num_kv_heads)),
      dim3(kThreads), shared_bytes(args.head_dim), how, args);
}

void prepare_attention_wgmma() {
  for (const int head_dim : {64, 128}) {
    cudaFuncSetAttribute(kernel_of(head_dim), cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(shared_bytes(head_dim)));
  }
}

}  // namespace trtmc::cuda
