// Where the chunks of attention_wgmma.cu lie in shared memory, and the warp group that fetches them
// ahead. Keys are [piece][position][8], values the same of each block, as the tensor core takes
// them and as a cache of bf16 has them.
#pragma once

#include "backends/cuda/kernels/attention_tile.cuh"
#include "backends/cuda/kernels/hopper.cuh"

namespace trtmc::cuda {

constexpr int kGroups = 2;
constexpr int kGroupThreads = 128;
constexpr int kConsumers = kGroups * kGroupThreads;
constexpr int kThreads = kConsumers + kGroupThreads;
constexpr int kConsumerWarps = kConsumers / static_cast<int>(kWarp);
constexpr int kGroupRows = 64;
constexpr int kStages = 3;
[[maybe_unused]] constexpr int kPieceBytes = 16;  // Eight components of a position.
constexpr int kBlocks = kChunkPositions / KvCacheView::kBlockSize;
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
using Place = RingPlace<kStages>;

// One of the four warps that fetch bf16, by its first thread: a quarter of each chunk's pieces.
template <int kHeadDim>
__device__ __forceinline__ void fetch(const TileWork& work, Stages<kHeadDim>& stages,
                                      Barriers& barriers, int first_chunk, int last_chunk,
                                      int warp) {
  using Of = Stages<kHeadDim>;
  constexpr int kShare = Of::kPieces / 4;
  constexpr int kBlockSize = KvCacheView::kBlockSize;
  Place place;
  for (int chunk = first_chunk; chunk <= last_chunk; ++chunk) {
    auto& stage = stages.stage[place.stage];
    wait_for(&barriers.empty[place.stage], place.parity ^ 1);
    const auto from = [&](int side, int block) {
      return work.component<KvType::kBF16>(side, chunk * kChunkPositions + block * kBlockSize,
                                           warp * kShare * 8);
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
        copy_bulk(&stage.keys[warp * kShare + i][block * kBlockSize],
                  keys + i * kBlockSize * kPieceBytes, kBlockSize * kPieceBytes,
                  &barriers.keys[place.stage]);
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

// What a thread that fetches fp8 has of a chunk's keys or values: runs of 16 codes of one position,
// which become two pieces each. Zeros behind the last position.
template <int kHeadDim>
struct Runs {
  static constexpr int kPositionThreads = kGroupThreads / kChunkPositions;
  static constexpr int kCount = kHeadDim / 16 / kPositionThreads;
  uint4 codes[kCount];
  float scale;

  __device__ __forceinline__ void load(const TileWork& work, int side, int chunk, int thread) {
    const int position = chunk * kChunkPositions + thread % kChunkPositions;
    scale = 0;
#pragma unroll
    for (uint4& run : codes) run = make_uint4(0, 0, 0, 0);
    if (position > work.last_position) return;
    const std::byte* head = work.head_at(side, position);
    scale = work.scale_at(head, position);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int d = (i * kPositionThreads + thread / kChunkPositions) * 16;
      const int place = work.place<KvType::kFp8>(position, d);
      codes[i] = __ldcg(reinterpret_cast<const uint4*>(head + place));
    }
  }
  // piece(i): where piece i of the thread's position lies.
  template <typename Piece>
  __device__ __forceinline__ void widen(int thread, Piece piece) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int run = i * kPositionThreads + thread / kChunkPositions;
      widen_fp8(codes[i], scale, *piece(2 * run), *piece(2 * run + 1));
    }
  }
};

// One of the 128 threads that fetch fp8: one side is on its way while the other is widened.
template <int kHeadDim>
__device__ __forceinline__ void fetch_fp8(const TileWork& work, Stages<kHeadDim>& stages,
                                          Barriers& barriers, int first_chunk, int last_chunk,
                                          int thread) {
  constexpr int kBlockSize = KvCacheView::kBlockSize;
  const int position = thread % kChunkPositions;
  // A warp's pieces are there.
  const auto finish = [&](uint64_t& barrier) {
    fence_for_products();
    __syncwarp();
    if (thread % static_cast<int>(kWarp) == 0) arrive(&barrier);
  };
  Runs<kHeadDim> keys, values;
  keys.load(work, 0, first_chunk, thread);
  Place place;
  for (int chunk = first_chunk; chunk <= last_chunk; ++chunk) {
    auto& stage = stages.stage[place.stage];
    values.load(work, 1, chunk, thread);
    wait_for(&barriers.empty[place.stage], place.parity ^ 1);
    keys.widen(thread, [&](int piece) { return &stage.keys[piece][position]; });
    finish(barriers.keys[place.stage]);
    if (chunk < last_chunk) keys.load(work, 0, chunk + 1, thread);
    values.widen(thread, [&](int piece) {
      return &stage.values[position / kBlockSize][piece][position % kBlockSize];
    });
    finish(barriers.values[place.stage]);
    place.advance();
  }
}

#endif

}  // namespace trtmc::cuda
