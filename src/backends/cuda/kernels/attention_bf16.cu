// Attention over a cache of bf16 on the tensor cores: the kernels.
#include "backends/cuda/kernels/attention_chunk.cuh"

namespace trtmc::cuda {
namespace {

// So many walks over a sequence keep a device busy without sharing their chunks.
constexpr unsigned kManyWalks = 128;
// Of a multiprocessor's memory, in percent, where it attends beside kernels that want all of it
// shared. Measured: with all of it, a step of q8 after 16 384 tokens takes a fifth longer.
constexpr int kMostlyShared = 75;

// Many queries, or many sequences with one each: a block walks all the chunks of its tiles.
template <int kTiles, int kTerms>
__global__ void __launch_bounds__(kAttentionThreads, kTiles == 1 ? 4 : 1)
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
  work.copy_side(chunk, 0, end);
  commit_copies();
  if (is_new) wait_for_predecessors();
  __syncthreads();
  work.load_queries();

  float result[2][kTiles][4] = {};
  for (; chunk <= last_chunk; ++chunk) {
    work.copy_side(chunk, 1, end);
    commit_copies();
    if (is_new && chunk == last_chunk) {
      wait_for_copies<0>();
      __syncthreads();
      if (work.thread < args.head_dim) {
        work.store_new(work.thread, work.new_pair(work.thread));
      }
    }
    wait_for_copies<1>();
    __syncthreads();
    work.score(chunk);
    __syncthreads();
    work.copy_side(chunk + 1, 0, end);  // Zeros behind the last.
    commit_copies();
    work.soften();
    wait_for_copies<1>();
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

// One query of each sequence: a block for each chunk.
template <int kTerms>
__global__ void __launch_bounds__(kAttentionThreads)
    attend_split_kernel(const __grid_constant__ AttentionArgs args) {
  extern __shared__ uint4 memory[];
  auto& shared = *reinterpret_cast<AttentionShared<1, kTerms>*>(memory);
  const int chunk = static_cast<int>(blockIdx.x);
  release_successors();
  Attention<1, kTerms> work(args, args.tiles[blockIdx.z], kFewQueryRows, shared);
  const bool works = begin_chunk(work, chunk);
  __syncthreads();
  wait_for_predecessors();
  if (works) finish_chunk(work, chunk, int64_t{blockIdx.z} * gridDim.y + blockIdx.y);
}

template <int kTerms>
void prepare(bool all_shared) {
  constexpr int kTiles = kManyBf16QueryRows / kTileRows;
  cudaFuncSetAttribute(attend_whole_kernel<kTiles, kTerms>,
                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                       sizeof(AttentionShared<kTiles, kTerms>));
  cudaFuncSetAttribute(attend_whole_kernel<1, kTerms>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       sizeof(AttentionShared<1, kTerms>));
  cudaFuncSetAttribute(attend_split_kernel<kTerms>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       sizeof(AttentionShared<1, kTerms>));
  divide_memory(attend_split_kernel<kTerms>, all_shared ? kMostlyShared : kHalfShared);
}

template <int kTerms>
void launch_with(const AttentionArgs& args, const Launch& how) {
  const auto heads = static_cast<unsigned>(args.cache.num_kv_heads);
  const auto tiles = static_cast<unsigned>(args.num_tiles);
  constexpr int kTiles = kManyBf16QueryRows / kTileRows;
  if (args.num_chunks == 0) {
    launch(attend_whole_kernel<kTiles, kTerms>, dim3(tiles, heads), dim3(kAttentionThreads),
           sizeof(AttentionShared<kTiles, kTerms>), how, args);
  } else if (tiles * heads >= kManyWalks) {
    launch(attend_whole_kernel<1, kTerms>, dim3(tiles, heads), dim3(kAttentionThreads),
           sizeof(AttentionShared<1, kTerms>), how, args);
  } else {
    launch(attend_split_kernel<kTerms>, dim3(static_cast<unsigned>(args.num_chunks), heads, tiles),
           dim3(kAttentionThreads), sizeof(AttentionShared<1, kTerms>), how, args);
  }
}

}  // namespace

void launch_attention_bf16(AttentionArgs args, const Launch& how) {
  args.scale *= kLog2E;
  if (args.num_terms == 1) {
    launch_with<1>(args, how);
  } else {
    launch_with<3>(args, how);
  }
}

int attention_bf16_shared_bytes() {
  return static_cast<int>(sizeof(AttentionShared<kManyBf16QueryRows / kTileRows, 3>));
}

void prepare_attention_bf16(bool all_shared) {
  prepare<1>(all_shared);
  prepare<3>(all_shared);
}

}  // namespace trtmc::cuda
