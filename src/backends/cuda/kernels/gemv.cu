// y = W x for up to 16 tokens, on the tensor cores although it is bound by memory: several terms of
// several tokens cost little more there than one, and gemm can follow the same order of sums.
//
// A block takes panels in turn, each of its warps segments of k in turn. Weights come in pieces of
// eight steps: the next is on its way while the tensor core works on this one, across segments and
// panels; the first is asked for before the kernel in front has ended.
#include "backends/cuda/kernels/gemv.h"
#include "backends/cuda/kernels/gemv_parts.cuh"

namespace trtmc::cuda {
namespace {

static_assert(kPieceSteps % kExactSteps == 0);

struct KernelArgs {
  ProductArgs product;
  GemvPlan plan;
};

// One of a warp's pieces of work: two pieces of a segment of a panel.
struct Unit {
  int panel, segment, step;
};

__device__ __forceinline__ bool ends_segment(const KernelArgs& args, const Unit& unit) {
  return unit.step + kPairSteps >= segment_end(args.product, unit.segment);
}

__device__ __forceinline__ void advance(Unit& unit, const KernelArgs& args, int warp) {
  if (!ends_segment(args, unit)) {
    unit.step += kPairSteps;
    return;
  }
  unit.segment += args.plan.warps;
  if (unit.segment >= num_segments(args.product.steps)) {
    unit.segment = warp;
    unit.panel += static_cast<int>(gridDim.x);
  }
  unit.step = unit.segment * segment_steps(args.product.steps);
}

// A piece, zeros where the segment has no second one.
__device__ __forceinline__ void load_piece(uint4 (&to)[kPieceSteps], const KernelArgs& args,
                                           const Unit& unit, int piece, int lane) {
  const int first = unit.step + piece * kPieceSteps;
  const bool wanted =
      unit.panel < args.product.num_panels && first < segment_end(args.product, unit.segment);
  // Whole stages, which begin where pieces do.
  constexpr int kStageDistance = kGroupPanels * kStageSteps * kStepLanes;
  static_assert(kPieceSteps % kStageSteps == 0);
  const auto* from = static_cast<const uint4*>(args.product.weights) +
                     weight_part(unit.panel, first, args.product.steps) + lane;
#pragma unroll
  for (int i = 0; i < kPieceSteps; ++i) {
    to[i] =
        wanted
            ? load_streamed(from + i / kStageSteps * kStageDistance + i % kStageSteps * kStepLanes)
            : make_uint4(0, 0, 0, 0);
  }
}

template <int kTerms, int kTiles, bool kNorms, bool kPacked = false>
__global__ void __launch_bounds__(kMostGemvWarps* kWarp, kTiles* kTerms <= 3 ? 2 : 1)
    gemv_kernel(const __grid_constant__ KernelArgs args) {
  extern __shared__ uint4 shared[];
  __shared__ TurnBarriers barriers;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const ProductArgs& product = args.product;
  const int tokens = product.num_tokens;
  const int staged_words = kPairSteps * kTerms * tokens * kStepWords;
  const int partial_floats = num_segments(product.steps) * tokens * kPanelRows;
  const int staged_pairs = kNorms ? 1 : args.plan.staged_pairs;
  auto* staged = reinterpret_cast<uint32_t*>(shared) + warp * staged_pairs * staged_words;
  float* partial = reinterpret_cast<float*>(shared) + args.plan.warps * staged_pairs * staged_words;

  uint4 first[kPieceSteps], second[kPieceSteps];
  Unit unit{static_cast<int>(blockIdx.x), warp, warp * segment_steps(product.steps)};
  const bool works = warp < args.plan.warps;
  if (works) load_piece(first, args, unit, 0, lane);

  release_successors();
  if (warp == 0) barriers.init(args.plan.warps, lane);
  __syncthreads();
  Turn turn;
  int finisher = 0;  // The warp that finishes the panel: another one each time.
  if constexpr (kNorms) {
    Norm norm;
    norm.load(product, product.norm, unit.step, lane);
    wait_for_predecessors();
    float* squares = partial + args.plan.turns * partial_floats;  // [tokens][parts]
    norm.stage<kTerms>(staged, product, squares, unit.step, warp, args.plan.warps, lane);
  } else {
    wait_for_predecessors();
  }

  // Of terms: which steps are staged, and in which half of the room if it has two.
  int staged_step = -1;
  int slot = 0;
  if (!kNorms && works && staged_pairs == 2)
    stage_terms<kTerms>(staged, product, unit.segment, unit.step, lane);
  SegmentSums<kTerms, kTiles, kPacked> sums;
  sums.clear();
  for (int panel = static_cast<int>(blockIdx.x); panel < product.num_panels;
       panel += static_cast<int>(gridDim.x), turn.advance(args.plan.turns)) {
    float* sums_of_panel = partial + turn.turn * partial_floats;
    while (works && unit.panel == panel) {
      load_piece(second, args, unit, 1, lane);
      const Unit now = unit;
      advance(unit, args, warp);
      const uint32_t* at = staged + slot * staged_words;
      if constexpr (!kNorms) {
        if (staged_pairs == 1 && staged_step != now.step) {
          __syncwarp();
          stage_terms<kTerms>(staged, product, now.segment, now.step, lane);
          staged_step = now.step;
        }
        wait_for_copies<0>();
        __syncwarp();
        if (staged_pairs == 2 && unit.panel < product.num_panels) {
          slot ^= 1;
          stage_terms<kTerms>(staged + slot * staged_words, product, unit.segment, unit.step, lane);
        }
      } else {
        __syncwarp();
      }
      sums.add_staged(first, at, 0, tokens, lane);
      load_piece(first, args, unit, 0, lane);
      if (now.step + kPieceSteps < segment_end(args.product, now.segment)) {
        sums.add_staged(second, at, kPieceSteps, tokens, lane);
      }
      if (ends_segment(args, now)) {
        sums.end();
        begin_sums(barriers, turn);
        keep(sums.of, sums_of_panel, now.segment, tokens, lane);
        sums.clear();
      }
    }
    end_sums(barriers, turn, lane);
    if (warp == finisher) {
      join_sums<kTerms>(barriers, turn, sums_of_panel, product, panel, lane);
    }
    if (++finisher == args.plan.warps) finisher = 0;
  }
}

using Kernel = void (*)(KernelArgs);

template <bool kNorms>
Kernel kernel_of(int num_terms, int num_tokens) {
  if (num_terms == 1) return num_tokens <= 8 ? gemv_kernel<1, 1, kNorms> : gemv_kernel<1, 2, false>;
  if (num_tokens <= 2) return gemv_kernel<3, 1, kNorms, true>;
  return num_tokens <= 8 ? gemv_kernel<3, 1, kNorms> : gemv_kernel<3, 2, false>;
}

}  // namespace

void launch_gemv(const ProductArgs& args, const GemvPlan& plan, const Launch& how) {
  const auto kernel = args.norm != nullptr ? kernel_of<true>(args.num_terms, args.num_tokens)
                                           : kernel_of<false>(args.num_terms, args.num_tokens);
  launch(kernel, dim3(static_cast<unsigned>(plan.blocks)),
         dim3(static_cast<unsigned>(plan.warps) * kWarp), plan.shared_bytes, how,
         KernelArgs{args, plan});
}

void prepare_gemv(int shared_bytes) {
  for (const int terms : {1, 3}) {
    for (const int tokens : {1, 8, kMostGemvTokens}) {
      for (const Kernel kernel :
           {kernel_of<true>(terms, tokens), kernel_of<false>(terms, tokens)}) {
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             shared_bytes - kGemvBarrierBytes);
      }
    }
  }
  // The others want shared memory for a second block.
  divide_memory(gemv_kernel<1, 1, true>, kHalfShared);
  divide_memory(gemv_kernel<1, 1, false>, kHalfShared);
  divide_memory(gemv_kernel<3, 1, true, true>, kHalfShared);
  divide_memory(gemv_kernel<3, 1, false, true>, kHalfShared);
}

}  // namespace trtmc::cuda
