// Attention over a cache of bf16 or fp8 on the tensor cores: the kernels.
#include <algorithm>

#include "backends/cuda/kernels/attention_join.cuh"

namespace trtmc::cuda {
namespace {

// So many walks over a sequence keep a device busy without sharing their chunks.
constexpr unsigned kManyWalks = 128;
// Of a multiprocessor's memory, in percent, where it attends beside kernels that want all of it
// shared. Measured: with all of it, a step of q8 after 16 384 tokens takes a fifth longer.
constexpr int kMostlyShared = 75;

// Blocks that a multiprocessor has at once: with fp8 on its way in registers there is room for
// less.
constexpr int walks_at_once(KvType type, int tiles) {
  if (tiles > 1) return 1;
  return type == KvType::kFp8 ? 3 : 4;
}

// Many queries, or many sequences with one each: a block walks all the chunks of its tiles.
template <KvType kType, int kTiles, int kTerms>
__global__ void __launch_bounds__(kAttentionThreads, walks_at_once(kType, kTiles))
    attend_whole_kernel(const __grid_constant__ AttentionArgs args) {
  extern __shared__ uint4 memory[];
  auto& shared = *reinterpret_cast<AttentionShared<kTiles, kTerms>*>(memory);
  release_successors();
  // Of one query each: what is in the cache already need not wait.
  const bool is_new = args.k != nullptr;
  if (!is_new) wait_for_predecessors();
  // The longest first, so that the last blocks are short.
  const int index = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  Attention<kTiles, kTerms> work(args, args.tiles[index],
                                 kTiles == 1 ? kFewQueryRows : kManyBf16QueryRows, shared);
  work.forget();
  const int end = work.last_position + (is_new ? 0 : 1);
  const int last_chunk = work.last_position / kChunkPositions;
  int chunk = work.first_position / kChunkPositions;
  Side<kType> keys, values;
  keys.ask(work, chunk, 0, end);
  if (is_new) wait_for_predecessors();
  __syncthreads();
  work.load_queries();

  float result[2][kTiles][4] = {};
  for (; chunk <= last_chunk; ++chunk) {
    values.ask(work, chunk, 1, end);
    if (is_new && chunk == last_chunk) {
      wait_for_copies<0>();
      __syncthreads();
      NewPart<kType> part;
      part.load(work);
      work.store_new(part);
    }
    keys.template receive<1>(work, 0);
    __syncthreads();
    work.score(chunk);
    __syncthreads();
    keys.ask(work, chunk + 1, 0, end);  // Zeros behind the last.
    work.soften();
    values.template receive<1>(work, 1);
    __syncthreads();
    if (work.mixes()) {
      AttentionSums<kTiles, kTerms> sums[2];
      work.mix(sums);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const int row = t * kTileRows + work.lane() / 4 + side * 8;
          const float ours = shared.ours[row], theirs = shared.theirs[row];
#pragma unroll
          for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int i = 2 * side; i < 2 * side + 2; ++i) {
              result[n][t][i] = joined(ours, result[n][t][i], theirs, sums[n].of[t].total[i]);
            }
          }
        }
      }
    }
    __syncthreads();
  }
  wait_for_copies<0>();
  if (!work.mixes()) return;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int row = t * kTileRows + work.lane() / 4;
      const int d = work.warp() * kStepColumns + n * 8 + work.lane() % 4 * 2;
      work.store(row, d, result[n][t][0], result[n][t][1]);
      work.store(row + 8, d, result[n][t][2], result[n][t][3]);
    }
  }
}

// ---- One query of each sequence: its chunks are shared out among blocks

template <KvType kType>
struct Sides {
  Side<kType> keys, values;

  template <typename Work>
  __device__ __forceinline__ void ask(Work& work, int chunk) {
    keys.ask(work, chunk, 0, work.last_position);
    values.ask(work, chunk, 1, work.last_position);
  }
  template <typename Work>
  __device__ __forceinline__ void receive(Work& work) const {
    keys.template receive<0>(work, 0);
    values.template receive<0>(work, 1);
  }
};

// A sequence of one chunk, whose mixture is the result.
template <int kTerms>
__device__ __forceinline__ void store_only(const Attention<1, kTerms>& work,
                                           const AttentionSums<1, kTerms> (&sums)[2]) {
  if (!work.mixes()) return;
  const int row = work.lane() / 4;  // Of those that a tile has, in the lower half.
  const int d = work.warp() * kStepColumns + work.lane() % 4 * 2;
  const float theirs = work.shared.theirs[row], ours = work.shared.ours[row];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    work.store(row, d + n * 8, joined(ours, 0, theirs, sums[n].of[0].total[0]),
               joined(ours, 0, theirs, sums[n].of[0].total[1]));
  }
}

// The chunks from `chunk` on in steps of the grid's width. `sides`: of the first of them, on their
// way. Once the new key and value are there.
template <KvType kType, int kTerms>
__device__ __forceinline__ void attend_chunks(Attention<1, kTerms>& work, Sides<kType>& sides,
                                              int chunk, int64_t index) {
  const ChunkJoin<kTerms> join(work, index);
  const int distance = static_cast<int>(gridDim.x);
  sides.receive(work);
  sync_attention();
  // All that is read of the step is asked for before anything is stored.
  NewPart<kType> part;
  if ((join.last_chunk() - chunk) % distance == 0) part.load(work);
  work.load_queries();
  while (true) {
    const int next = chunk + distance;
    if (chunk == join.last_chunk()) work.store_new(part);
    sync_attention();
    if (next <= join.last_chunk()) sides.ask(work, next);
    work.score(chunk);
    sync_attention();
    work.soften();
    sync_attention();
    AttentionSums<1, kTerms> sums[2];
    if (work.mixes()) work.mix(sums);
    if (join.is_only_one()) return store_only(work, sums);
    join.leave(chunk, sums);
    if (next > join.last_chunk()) break;
    sync_attention();
    sides.receive(work);
    chunk = next;
  }
  if (join.is_last_block()) join.store();
}

template <KvType kType, int kTerms>
__global__ void __launch_bounds__(kAttentionThreads)
    attend_split_kernel(const __grid_constant__ AttentionArgs args) {
  extern __shared__ uint4 memory[];
  auto& shared = *reinterpret_cast<AttentionShared<1, kTerms>*>(memory);
  release_successors();
  Attention<1, kTerms> work(args, args.tiles[blockIdx.z], kFewQueryRows, shared);
  const int distance = static_cast<int>(gridDim.x);
  int chunk = static_cast<int>(blockIdx.x);
  while (chunk < work.first_position / kChunkPositions) chunk += distance;
  const bool works = chunk <= work.last_position / kChunkPositions;
  Sides<kType> sides;
  if (works) {
    work.forget();
    sides.ask(work, chunk);  // What is in the cache already need not wait.
  }
  __syncthreads();
  wait_for_predecessors();
  if (works) attend_chunks(work, sides, chunk, int64_t{blockIdx.z} * gridDim.y + blockIdx.y);
}

// Blocks for the chunks of a tile and KV head. Of bf16 one each: its keys and values have one place
// in shared memory. Of fp8 as many as a device may have at once: a block asks for the next chunk
// while it attends to one, and has its queries already.
unsigned split_blocks(const AttentionArgs& args) {
  constexpr unsigned kBlocksAtOnce = 256;
  const auto chunks = static_cast<unsigned>(args.num_chunks);
  if (args.cache.type == KvType::kBF16) return chunks;
  const auto walks = static_cast<unsigned>(args.num_tiles * args.cache.num_kv_heads);
  return std::clamp(kBlocksAtOnce / walks, 1U, chunks);
}

template <KvType kType, int kTerms>
void prepare(bool all_shared) {
  constexpr int kTiles = kManyBf16QueryRows / kTileRows;
  const auto give_shared = [](void (*kernel)(AttentionArgs), size_t bytes) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(bytes));
  };
  give_shared(attend_whole_kernel<kType, kTiles, kTerms>, sizeof(AttentionShared<kTiles, kTerms>));
  give_shared(attend_whole_kernel<kType, 1, kTerms>, sizeof(AttentionShared<1, kTerms>));
  give_shared(attend_split_kernel<kType, kTerms>, sizeof(AttentionShared<1, kTerms>));
  divide_memory(attend_split_kernel<kType, kTerms>, all_shared ? kMostlyShared : kHalfShared);
}

template <KvType kType, int kTerms>
void launch_with(const AttentionArgs& args, const Launch& how) {
  const auto heads = static_cast<unsigned>(args.cache.num_kv_heads);
  const auto tiles = static_cast<unsigned>(args.num_tiles);
  constexpr int kTiles = kManyBf16QueryRows / kTileRows;
  if (args.num_chunks == 0) {
    launch(attend_whole_kernel<kType, kTiles, kTerms>, dim3(tiles, heads), dim3(kAttentionThreads),
           sizeof(AttentionShared<kTiles, kTerms>), how, args);
  } else if (tiles * heads >= kManyWalks) {
    launch(attend_whole_kernel<kType, 1, kTerms>, dim3(tiles, heads), dim3(kAttentionThreads),
           sizeof(AttentionShared<1, kTerms>), how, args);
  } else {
    launch(attend_split_kernel<kType, kTerms>, dim3(split_blocks(args), heads, tiles),
           dim3(kAttentionThreads), sizeof(AttentionShared<1, kTerms>), how, args);
  }
}

}  // namespace

void launch_attention_bf16(AttentionArgs args, const Launch& how) {
  args.scale *= kLog2E;
  const bool is_fp8 = args.cache.type == KvType::kFp8;
  if (args.num_terms == 1) {
    is_fp8 ? launch_with<KvType::kFp8, 1>(args, how) : launch_with<KvType::kBF16, 1>(args, how);
  } else {
    is_fp8 ? launch_with<KvType::kFp8, 3>(args, how) : launch_with<KvType::kBF16, 3>(args, how);
  }
}

int attention_bf16_shared_bytes() {
  return static_cast<int>(sizeof(AttentionShared<kManyBf16QueryRows / kTileRows, 3>));
}

void prepare_attention_bf16(bool all_shared) {
  prepare<KvType::kBF16, 1>(all_shared);
  prepare<KvType::kBF16, 3>(all_shared);
  prepare<KvType::kFp8, 1>(all_shared);
  prepare<KvType::kFp8, 3>(all_shared);
}

}  // namespace trtmc::cuda
