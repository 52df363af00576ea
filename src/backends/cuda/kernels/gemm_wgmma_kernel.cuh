// The kernel of gemm_wgmma.cu and gemm_wgmma_quantized.cu: what becomes of a tile's sums, and who
// does what in a block.
#pragma once

#include <span>

#include "backends/cuda/kernels/gemm_wgmma.cuh"
#include "backends/cuda/kernels/gemm_wgmma_scaled.cuh"

namespace trtmc::cuda {

#ifdef TRTMC_HAS_WGMMA

// ---- The end of a tile

// A warp's sums of one segment, for those who finish them: [token][row]. kAdds: to what the same
// warp has left there.
template <int kTokens, bool kAdds = false, int kPitch>
__device__ __forceinline__ void leave(const float (&sums)[kTokens / 2], float (*to)[kPitch],
                                      int first_row, int lane) {
  const int row = first_row + lane / 4 * 2;
  const auto put = [](float* at, float a, float b) {
    auto& pair = *reinterpret_cast<float2*>(at);
    pair = kAdds ? make_float2(__fadd_rn(pair.x, a), __fadd_rn(pair.y, b)) : make_float2(a, b);
  };
#pragma unroll
  for (int i = 0; i < kTokens / 8; ++i) {
    const int token = i * 8 + lane % 4 * 2;
    put(&to[token][row], sums[4 * i], sums[4 * i + 2]);
    put(&to[token + 1][row], sums[4 * i + 1], sums[4 * i + 3]);
  }
}

// This block's share of the tile: the segments of all blocks, in their order.
template <typename Of>
__device__ __forceinline__ void join(const ProductArgs& args, const Tile& tile,
                                     const float (*sums)[Of::kPitch], int rank, int thread) {
  constexpr int kQuads = Of::kRows / 4;
  const int ranks = num_segments(args.steps);
  for (int i = rank * Of::kConsumers + thread; i < Of::kTokens * kQuads;
       i += ranks * Of::kConsumers) {
    const int token = tile.first_token + i / kQuads;
    const int row = tile.first_panel * kPanelRows + i % kQuads * 4;
    if (token >= args.num_tokens || row >= args.num_panels * kPanelRows) continue;
    const float* at = &sums[i / kQuads][i % kQuads * 4];
    float4 total = load_remote(at, 0);
#pragma unroll 4
    for (int other = 1; other < ranks; ++other) total = added(total, load_remote(at, other));
    finish_four<Of::kTerms>(args, token, row, total);
  }
}

template <typename Of>
__device__ __forceinline__ void multiply_segment(Consumer<Of>& consumer,
                                                 float (&sums)[Of::kTokens / 2], int steps) {
  if constexpr (Of::kQuantized) {
    multiply_scaled_segment(consumer, sums, steps);
  } else if constexpr (Of::kTerms == 1) {
    consumer.multiply_segment(sums, steps);
  } else {
    consumer.multiply_segment_exactly(sums, steps);
  }
}

// What those that make sums and those that finish them say to each other: a tile is left once all
// who finish have taken the last one (kTaken), and taken once all who make sums have left it
// (kLeft). Both barriers count all threads of both, and each side waits at one of them before it
// comes to the other, so neither can be a tile ahead. compute-sanitizer's racecheck reports leave()
// and finish_left() all the same: one side only arrives (bar.arrive).
constexpr int kLeft = 2, kTaken = 3;

// The tile's sums are added up where they are left: registers have no room for them beside those of
// a segment and of a block.
template <typename Of>
__device__ __forceinline__ void leave_by_segments(const ProductArgs& args, Consumer<Of>& consumer,
                                                  typename Of::Left& left) {
  constexpr int kThreads = Of::kConsumers + Of::kFinishers;
  const int row = (consumer.group * kGroupPanels + consumer.warp) * kPanelRows;
  const int length = args.segment;
  for (int step = 0; step < args.steps; step += length) {
    float sums[Of::kTokens / 2];
    multiply_segment(consumer, sums, min(length, args.steps - step));
    if (step == 0) {
      sync_threads_at<kThreads>(kTaken);
      leave<Of::kTokens>(sums, left, row, consumer.lane);
    } else {
      leave<Of::kTokens, true>(sums, left, row, consumer.lane);
    }
  }
  arrive_at_threads<kThreads>(kLeft);
}

template <typename Of>
__device__ __forceinline__ void make_tile(const ProductArgs& args, Consumer<Of>& consumer,
                                          const Tile& tile, typename Of::Left& left) {
  if constexpr (Of::kQuantized && Of::kFinishes) {
    leave_by_segments(args, consumer, left);
    return;
  }
  const int length = args.segment;
  float totals[Of::kTokens / 2];
  multiply_segment(consumer, totals, min(length, args.steps));
  for (int step = length; step < args.steps; step += length) {
    float sums[Of::kTokens / 2];
    multiply_segment(consumer, sums, min(length, args.steps - step));
    consumer.add(totals, sums);
  }
  const int row = (consumer.group * kGroupPanels + consumer.warp) * kPanelRows;
  if constexpr (Of::kFinishes) {
    constexpr int kThreads = Of::kConsumers + Of::kFinishers;
    sync_threads_at<kThreads>(kTaken);
    leave<Of::kTokens>(totals, left, row, consumer.lane);
    arrive_at_threads<kThreads>(kLeft);
  } else {
    finish_tiles<Of::kTerms, Of::kTokens / 8>(
        args, tile.first_token, tile.first_panel * kPanelRows + row, totals, consumer.lane);
  }
}

// The tile that is left, if its rows alternate: a warp takes 8 tokens by 16 rows at a time, as
// terms lie together.
template <typename Of>
__device__ __forceinline__ void finish_swiglu(const ProductArgs& args, const Tile& tile,
                                              const typename Of::Left& left, int thread) {
  constexpr int kPanels = Of::kPanels;
  constexpr int kAtOnce = 4;
  constexpr int kWarps = Of::kFinishers / kStepLanes;
  const int lane = thread % kStepLanes;
  for (int first = thread / kStepLanes; first < Of::kTokens / 8 * kPanels;
       first += kAtOnce * kWarps) {
    float2 results[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kWarps;
      const float4 sums = *reinterpret_cast<const float4*>(
          &left[at / kPanels * 8 + lane / 4][at % kPanels * kPanelRows + lane % 4 * 4]);
      results[i] = make_float2(silu_times(sums.x, sums.y), silu_times(sums.z, sums.w));
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kWarps;
      const int token = tile.first_token + at / kPanels * 8 + lane / 4;
      const int panel = tile.first_panel + at % kPanels;
      if (token >= args.num_tokens || panel >= args.num_panels) continue;
      store_terms<Of::kTerms>(args.out_terms, token, panel * kPanelRows / 2 + lane % 4 * 2,
                              results[i].x, results[i].y);
    }
  }
}

// Else: a warp takes rows of a token.
template <typename Of>
__device__ __forceinline__ void finish_left(const ProductArgs& args, const Tile& tile,
                                            const typename Of::Left& left, int thread) {
  constexpr int kQuads = Of::kRows / 4;
  constexpr int kAtOnce = 8;
  constexpr int kDistance = Of::kFinishers / kQuads;
  const int quad = thread % kQuads * 4;
  const int row = tile.first_panel * kPanelRows + quad;
  if (row >= args.num_panels * kPanelRows) return;
  const bool adds = args.epilogue == Epilogue::kAdd && row + 3 < args.num_rows;
  for (int first = thread / kQuads; first < Of::kTokens; first += kAtOnce * kDistance) {
    float4 before[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int token = tile.first_token + first + i * kDistance;
      before[i] = adds && token < args.num_tokens
                      ? *reinterpret_cast<const float4*>(args.out + token * args.out_stride + row)
                      : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int token = tile.first_token + first + i * kDistance;
      if (token >= args.num_tokens) break;
      const float4 sums = *reinterpret_cast<const float4*>(&left[first + i * kDistance][quad]);
      if (adds) {
        *reinterpret_cast<float4*>(args.out + token * args.out_stride + row) =
            added(before[i], sums);
      } else {
        finish_four<Of::kTerms>(args, token, row, sums);
      }
    }
  }
}

template <typename Of>
__device__ __forceinline__ void make_share(const ProductArgs& args, Consumer<Of>& consumer,
                                           const Tile& tile, void* shared, int rank, int thread) {
  auto& left = *static_cast<typename Of::Left*>(shared);
  float sums[Of::kTokens / 2];
  multiply_segment(consumer, sums, tile.last_step - tile.first_step);
  sync_threads_at<Of::kConsumers>(kLeft);  // What is left lies over the stages.
  leave<Of::kTokens>(sums, left, (consumer.group * kGroupPanels + consumer.warp) * kPanelRows,
                     consumer.lane);
  sync_cluster();
  join<Of>(args, tile, left, rank, thread);
}

#endif

template <typename Of>
__global__ void __launch_bounds__(Of::kThreads, Of::kBlocks)
    gemm_wgmma_kernel(const __grid_constant__ WgmmaArgs args) {
#ifdef TRTMC_HAS_WGMMA
  extern __shared__ __align__(128) uint4 shared[];
  __shared__ uint64_t full[Of::kStages], empty[Of::kStages];
  auto* stages = reinterpret_cast<typename Of::Stage*>(shared);
  constexpr int kWarpThreads = static_cast<int>(kWarp);
  const int thread = static_cast<int>(threadIdx.x);
  const int rank = Of::kWay == Way::kSplit ? cluster_rank() : 0;
  const int num_tiles = args.plan.row_tiles * args.plan.token_tiles;
  const int first_tile = static_cast<int>(blockIdx.y);
  const int tile_distance = static_cast<int>(gridDim.y);

  release_successors();
  if (thread == 0) {
    for (int i = 0; i < Of::kStages; ++i) {
      init_barrier(&full[i], 1);
      init_barrier(&empty[i], Of::kConsumers / kWarpThreads);
    }
    fence_barriers();
  }
  Decoder<Of::kFormat>(0).fill(thread, Of::kThreads);
  __syncthreads();

  auto& left = *reinterpret_cast<typename Of::Left*>(stages + Of::kStages);
  if (thread >= Of::kConsumers + Of::kFinishers) {
    if constexpr (Of::kLarge) give_registers<kSpareRegisters>();
    if (thread == Of::kConsumers + Of::kFinishers) {
      fetch<Of>(args, {args.product, stages, full}, empty, first_tile, num_tiles, tile_distance,
                rank);
    }
    __syncwarp();
    if constexpr (Of::kWay == Way::kSplit) sync_cluster();
  } else if (thread >= Of::kConsumers) {
    if constexpr (Of::kFinishes) {
      constexpr int kThreads = Of::kConsumers + Of::kFinishers;
      give_registers<kFinishingRegisters>();
      wait_for_predecessors();
      for (int index = first_tile; index < num_tiles; index += tile_distance) {
        arrive_at_threads<kThreads>(kTaken);
        sync_threads_at<kThreads>(kLeft);
        const Tile tile = tile_of<Of>(args, index, rank);
        if (args.product.epilogue == Epilogue::kSwiglu) {
          finish_swiglu<Of>(args.product, tile, left, thread - Of::kConsumers);
        } else {
          finish_left<Of>(args.product, tile, left, thread - Of::kConsumers);
        }
      }
    }
  } else {
    if constexpr (Of::kFinishes) take_registers<kTakenBesideFinishing>();
    if constexpr (Of::kLarge && !Of::kFinishes) take_registers<kTakenRegisters>();
    wait_for_predecessors();
    const int warp = thread / kWarpThreads;
    Consumer<Of> consumer{
        stages, full, empty, {}, warp / kGroupPanels, warp % kGroupPanels, thread % kWarpThreads};
    for (int index = first_tile; index < num_tiles; index += tile_distance) {
      const Tile tile = tile_of<Of>(args, index, rank);
      if constexpr (Of::kWay == Way::kSplit) {
        make_share<Of>(args.product, consumer, tile, shared, rank, thread);
      } else {
        make_tile<Of>(args.product, consumer, tile, left);
      }
    }
  }
  // Nobody leaves while others read what it has left.
  if constexpr (Of::kWay == Way::kSplit) sync_cluster();
#endif
}

using WgmmaKernel = void (*)(WgmmaArgs);

// A shape that there is a kernel of.
struct WgmmaChoice {
  WeightFormat format;
  int terms, groups, tokens;
  Way way;
  int threads;
  size_t shared_bytes;
  WgmmaKernel kernel;
};
template <typename Of>
constexpr WgmmaChoice wgmma_choice() {
  return {Of::kFormat, Of::kTerms,   Of::kGroups,      Of::kTokens,
          Of::kWay,    Of::kThreads, Of::kSharedBytes, gemm_wgmma_kernel<Of>};
}

inline void launch_choice(std::span<const WgmmaChoice> choices, const ProductArgs& args,
                          const WgmmaPlan& plan, const Launch& how) {
  const Way way = plan.splits ? Way::kSplit : Way::kAlone;
  for (const WgmmaChoice& of : choices) {
    if (of.format != args.format || of.terms != args.num_terms || of.groups != plan.groups ||
        of.tokens != plan.tokens || of.way != way) {
      continue;
    }
    const int cluster = plan.splits ? num_segments(args.steps) : 1;
    launch_clusters(of.kernel,
                    dim3(static_cast<unsigned>(cluster), static_cast<unsigned>(plan.clusters)),
                    dim3(static_cast<unsigned>(of.threads)), of.shared_bytes,
                    static_cast<unsigned>(cluster), how, WgmmaArgs{args, plan});
  }
}

inline void prepare_choices(std::span<const WgmmaChoice> choices) {
  for (const WgmmaChoice& of : choices) {
    cudaFuncSetAttribute(of.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(of.shared_bytes));
  }
}

}  // namespace trtmc::cuda
