// y = W x for up to 16 tokens, on the tensor cores although it is bound by memory: several terms of
// several tokens cost little more there than one, and gemm can follow the same order of sums.
//
// A block takes panels in turn, each of its warps segments of k in turn. Weights come in pieces of
// eight steps: the next is on its way while the tensor core works on this one, across segments and
// panels; the first is asked for before the kernel in front has ended.
#include "backends/cuda/kernels/copy_async.cuh"
#include "backends/cuda/kernels/gemv.h"
#include "backends/cuda/kernels/product_output.cuh"

namespace trtmc::cuda {
namespace {

constexpr int kPairSteps = 2 * kPieceSteps;  // Of activations that are staged at once.
static_assert(kPieceSteps % kExactSteps == 0);

struct KernelArgs {
  ProductArgs product;
  GemvPlan plan;
};

// Barriers of the whole block by number: 0 is that of __syncthreads.
constexpr int kFirstBarrier = 1;
__device__ __forceinline__ void sync_block_at(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(blockDim.x) : "memory");
}
__device__ __forceinline__ void arrive_at_block(int barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(blockDim.x) : "memory");
}

// One of a warp's pieces of work: two pieces of a segment of a panel.
struct Unit {
  int panel, segment, step;
};

__device__ __forceinline__ int segment_end(const KernelArgs& args, int segment) {
  const int steps = args.product.steps;
  return min(steps, (segment + 1) * segment_steps(steps));
}
__device__ __forceinline__ bool ends_segment(const KernelArgs& args, const Unit& unit) {
  return unit.step + kPairSteps >= segment_end(args, unit.segment);
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
      unit.panel < args.product.num_panels && first < segment_end(args, unit.segment);
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

// What a warp stages of the activations: [step][term][half][token][4 words], of a pair of pieces.
template <int kTerms>
__device__ __forceinline__ void stage_terms(uint32_t* staged, const KernelArgs& args,
                                            const Unit& unit, int lane) {
  const ProductArgs& product = args.product;
  const int tokens = product.num_tokens;
  const int halves = min(kPairSteps, segment_end(args, unit.segment) - unit.step) * kTerms * 2;
  const uint32_t* from =
      product.in.words + int64_t{unit.step} * kTerms * 2 * kSmallestBlock * kHalfWords;
  for (int i = lane; i < halves * tokens; i += kStepLanes) {
    const int half = i / tokens;
    copy_async(reinterpret_cast<uint4*>(staged) + i,
               from + (half * kSmallestBlock + i - half * tokens) * kHalfWords, true);
  }
  commit_copies();
}

// The same from rows that are normed on the way: where a segment is one pair.
template <int kTerms>
__device__ __forceinline__ void stage_normed(uint32_t* staged, const KernelArgs& args,
                                             const float* squares, const float* norm,
                                             const Unit& unit, int lane) {
  const ProductArgs& product = args.product;
  const int tokens = product.num_tokens;
  for (int token = 0; token < tokens; ++token) {
    const float inverse =
        inverse_rms(squares + token * num_norm_parts(product.width), product.width, product.eps);
    const int row = product.rows == nullptr ? token : product.rows[token];
    const float* x = product.x + int64_t{row} * product.x_stride;
#pragma unroll
    for (int pair = lane; pair < kPairSteps * kStepWords; pair += kStepLanes) {
      const int column = unit.step * kStepColumns + pair * 2;
      float a = 0, b = 0;
      if (column < product.width) a = normed(x[column], inverse, norm[column]);
      if (column + 1 < product.width) b = normed(x[column + 1], inverse, norm[column + 1]);
      uint32_t words[kTerms];
      split<kTerms>(a, b, words);
#pragma unroll
      for (int term = 0; term < kTerms; ++term) {
        const int half = (pair / kStepWords * kTerms + term) * 2 + pair % kStepWords / kHalfWords;
        staged[(half * tokens + token) * kHalfWords + pair % kHalfWords] = words[term];
      }
    }
  }
}

__device__ __forceinline__ uint2 staged_words(const uint32_t* staged, int half, int tokens,
                                              int token, int lane) {
  const uint32_t* from = staged + (half * tokens + token) * kHalfWords + lane % 4;
  return make_uint2(from[0], from[tokens * kHalfWords]);
}

// Adds a piece to `sums`.
template <int kTerms, int kTiles>
__device__ __forceinline__ void multiply_piece(TermSums<kTerms> (&sums)[kTiles],
                                               const uint4 (&weights)[kPieceSteps],
                                               const uint32_t* staged, int piece, int tokens,
                                               int lane) {
#pragma unroll
  for (int i = 0; i < kPieceSteps; ++i) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int token = tile * 8 + lane / 4;
#pragma unroll
      for (int term = 0; term < kTerms; ++term) {
        uint2 b = make_uint2(0, 0);
        if (token < tokens) {
          const int half = ((piece * kPieceSteps + i) * kTerms + term) * 2;
          b = staged_words(staged, half, tokens, token, lane);
        }
        sums[tile].add(term, weights[i], b);
      }
      sums[tile].end_step(i);
    }
  }
}

// The same for up to two tokens, with their three terms side by side where the other tokens would
// be: term i of token t in column 2 i + t. The columns do not know of each other, so the bits are
// the same. Lanes of columns 0 and 1 have the first term's sums, and those alone are promoted.
__device__ __forceinline__ void multiply_piece_packed(TermSums<1>& sums, float (&promoted)[4],
                                                      const uint4 (&weights)[kPieceSteps],
                                                      const uint32_t* staged, int piece, int tokens,
                                                      int lane) {
  const int term = lane / 4 / 2;
  const int token = lane / 4 % 2;
  const bool used = term < 3 && token < tokens;
  const bool first = lane % 4 == 0;
#pragma unroll
  for (int i = 0; i < kPieceSteps; ++i) {
    uint2 b = make_uint2(0, 0);
    if (used) {
      const int half = ((piece * kPieceSteps + i) * 3 + term) * 2;
      b = staged_words(staged, half, tokens, token, lane);
    }
    sums.add(0, weights[i], b);
    if (i % kExactSteps == kExactSteps - 1) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (first) {
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
__device__ __forceinline__ void finish_panel(const float* partial, const KernelArgs& args,
                                             int panel, int lane) {
  const ProductArgs& product = args.product;
  constexpr int kQuads = kPanelRows / 4;
  const int tokens = product.num_tokens;
  const int segments = num_segments(product.steps);
  for (int i = lane; i < kQuads * tokens; i += kStepLanes) {
    const auto* from = reinterpret_cast<const float4*>(partial) + i;
    float4 total = *from;
#pragma unroll
    for (int segment = 1; segment < kMostSegments; ++segment) {
      if (segment < segments) total = added(total, from[segment * tokens * kQuads]);
    }
    finish_four<kTerms>(product, i / kQuads, panel * kPanelRows + i % kQuads * 4, total);
  }
}

// A warp's sums of the segment that it is in.
template <int kTerms, int kTiles, bool kPacked>
struct SegmentSums {
  TermSums<kPacked ? 1 : kTerms> of[kTiles];
  float promoted[4];

  __device__ __forceinline__ void add(const uint4 (&weights)[kPieceSteps], const uint32_t* staged,
                                      int piece, int tokens, int lane) {
    if constexpr (kPacked) {
      multiply_piece_packed(of[0], promoted, weights, staged, piece, tokens, lane);
    } else {
      multiply_piece(of, weights, staged, piece, tokens, lane);
    }
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

// What of the norms comes before the first panel: all that the block's tokens need of them.
__device__ __forceinline__ void take_squares(float* squares, const KernelArgs& args, int warp,
                                             int lane) {
  const ProductArgs& product = args.product;
  const int parts = num_norm_parts(product.width);
  for (int token = 0; token < product.num_tokens; ++token) {
    const int row = product.rows == nullptr ? token : product.rows[token];
    const float* x = product.x + int64_t{row} * product.x_stride;
    for (int i = warp; i < parts; i += args.plan.warps) {
      squares[token * parts + i] = part_squares(x, product.width, i, lane);
    }
  }
  __syncthreads();
}

template <int kTerms, int kTiles, bool kNorms, bool kPacked = false>
__global__ void __launch_bounds__(kMostGemvWarps* kWarp, kTiles* kTerms <= 3 ? 2 : 1)
    gemv_kernel(const __grid_constant__ KernelArgs args) {
  extern __shared__ uint4 shared[];
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
  const bool works = warp < num_segments(product.steps);
  if (works) load_piece(first, args, unit, 0, lane);

  release_successors();
  if constexpr (kNorms) {
    float* squares = partial + args.plan.turns * partial_floats;     // [tokens][parts]
    float* norm = squares + tokens * num_norm_parts(product.width);  // [width]
    for (int i = static_cast<int>(threadIdx.x); i < product.width;
         i += static_cast<int>(blockDim.x)) {
      norm[i] = product.norm[i];
    }
    wait_for_predecessors();
    take_squares(squares, args, warp, lane);
    if (works) stage_normed<kTerms>(staged, args, squares, norm, unit, lane);
  } else {
    wait_for_predecessors();
  }

  // Of terms: which steps are staged, and in which half of the room if it has two.
  int staged_step = -1;
  int slot = 0;
  if (!kNorms && works && staged_pairs == 2) stage_terms<kTerms>(staged, args, unit, lane);
  SegmentSums<kTerms, kTiles, kPacked> sums;
  sums.clear();
  for (int panel = static_cast<int>(blockIdx.x), round = 0; panel < product.num_panels;
       panel += static_cast<int>(gridDim.x), ++round) {
    float* sums_of_panel = partial + round % args.plan.turns * partial_floats;
    while (works && unit.panel == panel) {
      load_piece(second, args, unit, 1, lane);
      const Unit now = unit;
      advance(unit, args, warp);
      const uint32_t* at = staged + slot * staged_words;
      if constexpr (!kNorms) {
        if (staged_pairs == 1 && staged_step != now.step) {
          __syncwarp();
          stage_terms<kTerms>(staged, args, now, lane);
          staged_step = now.step;
        }
        wait_for_copies<0>();
        __syncwarp();
        if (staged_pairs == 2 && unit.panel < product.num_panels) {
          slot ^= 1;
          stage_terms<kTerms>(staged + slot * staged_words, args, unit, lane);
        }
      } else {
        __syncwarp();
      }
      sums.add(first, at, 0, tokens, lane);
      load_piece(first, args, unit, 0, lane);
      if (now.step + kPieceSteps < segment_end(args, now.segment)) {
        sums.add(second, at, 1, tokens, lane);
      }
      if (ends_segment(args, now)) {
        sums.end();
        keep(sums.of, sums_of_panel, now.segment, tokens, lane);
        sums.clear();
      }
    }
    // One warp finishes the panel, another one the next; the rest go on.
    const int turn = round % args.plan.turns;
    if (warp == round % args.plan.warps) {
      sync_block_at(kFirstBarrier + turn);
      finish_panel<kTerms>(sums_of_panel, args, panel, lane);
    } else {
      arrive_at_block(kFirstBarrier + turn);
    }
    if (turn == args.plan.turns - 1) __syncthreads();  // All sums may be overwritten.
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
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
      }
    }
  }
  // The others want shared memory for a second block.
  divide_memory_evenly(gemv_kernel<1, 1, true>);
  divide_memory_evenly(gemv_kernel<1, 1, false>);
  divide_memory_evenly(gemv_kernel<3, 1, true, true>);
  divide_memory_evenly(gemv_kernel<3, 1, false, true>);
}

}  // namespace trtmc::cuda
