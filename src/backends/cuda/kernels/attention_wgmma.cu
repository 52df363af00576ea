// Attention of many queries over a cache of bf16 or fp8 by wgmma, as attention.h says, with one
// term. A block has 128 rows of queries, 64 a warp group, and walks the chunks of 64 positions; one
// warp group fetches them ahead: bf16 by bulk copies that barriers count, fp8 through its
// registers, which widen it to what a cache of bf16 would have there. That takes no memory and, of
// one block, a fifth of the traffic of widening a sequence in memory first. Scores stay in
// registers and become, as they lie there, the left side of the product with the values. While one
// group works on its scores, the tensor core works for the other.
//
// Sums, maxima and joins are those of attention_bf16.cu, in the same order: a lane has of a row the
// columns 8 j + 2 t and + 1, there lane 4 j + t had them.
#include "backends/cuda/kernels/attention_stages.cuh"

namespace trtmc::cuda {
namespace {

// Registers of the threads that fetch and of those that multiply.
template <KvType kType>
constexpr int kSpareRegisters = kType == KvType::kFp8 ? 56 : 24;
template <KvType kType>
constexpr int kTakenRegisters = kType == KvType::kFp8 ? 224 : 240;

#ifdef TRTMC_HAS_WGMMA

// Two of the rows of a lane: 2 sides, g and g + 8 of its warp's sixteen.
struct Row {
  int own;  // Its position; -1: no such row.
  int token, head;
  float largest = -INFINITY;
  float sum = 0;
};

template <KvType kType, int kHeadDim>
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
      if (kType == KvType::kBF16 && chunk == last_chunk) clear_end(place, end, thread);
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

template <KvType kType, int kHeadDim>
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
    give_registers<kSpareRegisters<kType>>();
    if constexpr (kType == KvType::kFp8) {
      fetch_fp8<kHeadDim>(work, stages, barriers, first_chunk, last_chunk, thread - kConsumers);
    } else if (thread % kWarpThreads == 0) {
      fetch<kHeadDim>(work, stages, barriers, first_chunk, last_chunk,
                      (thread - kConsumers) / kWarpThreads);
    }
  } else {
    take_registers<kTakenRegisters<kType>>();
    Consumer<kType, kHeadDim> consumer{
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

template <KvType kType>
Kernel kernel_over(int head_dim) {
  return head_dim == 64 ? attend_wgmma_kernel<kType, 64> : attend_wgmma_kernel<kType, 128>;
}
Kernel kernel_of(KvType type, int head_dim) {
  return type == KvType::kFp8 ? kernel_over<KvType::kFp8>(head_dim)
                              : kernel_over<KvType::kBF16>(head_dim);
}
size_t shared_bytes(int head_dim) {
  return head_dim == 64 ? sizeof(Stages<64>) : sizeof(Stages<128>);
}

}  // namespace

void launch_attention_wgmma(AttentionArgs args, const Launch& how) {
  args.scale *= kLog2E;
  launch(
      kernel_of(args.cache.type, args.head_dim),
      dim3(static_cast<unsigned>(args.num_tiles), static_cast<unsigned>(args.cache.num_kv_heads)),
      dim3(kThreads), shared_bytes(args.head_dim), how, args);
}

void prepare_attention_wgmma() {
  for (const KvType type : {KvType::kBF16, KvType::kFp8}) {
    for (const int head_dim : {64, 128}) {
      cudaFuncSetAttribute(kernel_of(type, head_dim), cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(shared_bytes(head_dim)));
    }
  }
}

}  // namespace trtmc::cuda
