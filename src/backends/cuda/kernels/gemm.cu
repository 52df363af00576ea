// y = W x for many tokens, W of any format. A block makes a tile of 128 rows by 128 tokens (64 with
// three terms), each of its sixteen warps 32 by 32 (16) of it. Weights and terms lie in memory as
// the tensor core takes them, so that stages are copied to shared memory as they are (cp.async,
// several on their way) and read from there 16 or 8 bytes a lane without conflicts.
//
// Tokens are the faster index of the grid: the blocks that run together share few panels of W, and
// all of x stays in the second-level cache.
#include <type_traits>
#include <utility>

#include "backends/cuda/kernels/copy_async.cuh"
#include "backends/cuda/kernels/gemm.h"
#include "backends/cuda/kernels/launch_plan.h"
#include "backends/cuda/kernels/product_output.cuh"
#include "backends/cuda/kernels/quantized.cuh"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = kGemmWarps * static_cast<int>(kWarp);
constexpr int kWarpPanels = 2;
// Of 8 tokens. Three terms need more registers for sums.
template <int kTerms>
constexpr int kWarpTiles = gemm_tokens(kTerms) / (8 * kGemmWarps / (kGemmPanels / kWarpPanels));
constexpr int kWarpsAlongRows = kGemmPanels / kWarpPanels;
static_assert(kGemmSteps % kExactSteps == 0 && kPieceSteps % kGemmSteps == 0);
static_assert(kGemmSteps == kBlockSteps);

// Of a panel's step and of a stage, 16 bytes each.
constexpr int step_bytes(WeightFormat format) { return piece_bytes(format) / kPieceSteps; }
template <WeightFormat kFormat>
constexpr int kPanelParts = kGemmSteps* step_bytes(kFormat) / 16;
template <WeightFormat kFormat>
constexpr int kWeightParts = kGemmPanels* kPanelParts<kFormat>;

// Where a panel's part of a stage begins, in 16 bytes.
template <WeightFormat kFormat>
__device__ __forceinline__ int64_t stage_part(int panel, int step, int steps) {
  if constexpr (kFormat == WeightFormat::kBf16) {
    static_assert(kStageSteps % kGemmSteps == 0);
    return weight_part(panel, step, steps);
  } else {
    return quantized_piece(panel, step / kPieceSteps, steps) * (piece_bytes(kFormat) / 16) +
           step % kPieceSteps / kBlockSteps * kPanelParts<kFormat>;
  }
}

template <int kTerms>
constexpr int kTokenParts = kGemmSteps* kTerms* gemm_tokens(kTerms) * 2;

// Panel by panel: [step][lane] of bf16, a block of quantised weights.
template <WeightFormat kFormat>
__device__ __forceinline__ void copy_weights(uint4* to, const ProductArgs& args, int first_step) {
  constexpr int kParts = kPanelParts<kFormat>;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kWeightParts<kFormat>; i += kThreads) {
    const int panel = static_cast<int>(blockIdx.y) * kGemmPanels + i / kParts;
    const bool wanted = panel < args.num_panels;
    const int64_t part =
        wanted ? stage_part<kFormat>(panel, first_step, args.steps) + i % kParts : 0;
    copy_async(to + i, static_cast<const uint4*>(args.weights) + part, wanted);
  }
}

// [step][term][half][token] of the terms.
template <int kTerms>
__device__ __forceinline__ void copy_tokens(uint4* to, const ProductArgs& args, int first_step) {
  constexpr int kPartsOfTerm = gemm_tokens(kTerms) * 2;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kTokenParts<kTerms>; i += kThreads) {
    const int step = first_step + i / (kTerms * kPartsOfTerm);
    const int term = i / kPartsOfTerm % kTerms;
    const int half = i / gemm_tokens(kTerms) % 2;
    const int token = static_cast<int>(blockIdx.x) * gemm_tokens(kTerms) + i % gemm_tokens(kTerms);
    const bool wanted = token < args.num_tokens;
    const int64_t word =
        wanted ? term_word<kTerms>(args.in, step, term, token, half * kHalfWords) : 0;
    copy_async(to + i, args.in.words + word, wanted);
  }
}

// The right side of a step, of eight tokens from `token` on.
template <int kTerms>
__device__ __forceinline__ uint2 right_side(const uint4* tokens, int step, int term, int token,
                                            int lane) {
  constexpr int kHalf = gemm_tokens(kTerms) * kHalfWords;
  const uint32_t* word = reinterpret_cast<const uint32_t*>(tokens) +
                         (step * kTerms + term) * 2 * kHalf + (token + lane / 4) * kHalfWords +
                         lane % 4;
  return make_uint2(word[0], word[kHalf]);
}

template <WeightFormat kFormat, int kTerms>
struct Accumulators {
  static constexpr bool kQuantized = kFormat != WeightFormat::kBf16;
  static constexpr int kTiles = kWarpTiles<kTerms>;
  using Sums = std::conditional_t<kQuantized, ScaledSums<kTerms>, TermSums<kTerms>>;
  Sums sums[kWarpPanels][kTiles];
  float totals[kWarpPanels][kTiles][4];

  // One stage, of quantised weights: a block.
  __device__ __forceinline__ void multiply_block(const Decoder<kFormat>& decoder,
                                                 const uint4* weights, const uint4* tokens,
                                                 int warp, int lane) {
    const int panel = warp % kWarpsAlongRows * kWarpPanels;
    const int token = warp / kWarpsAlongRows * kTiles * 8;
    uint4 a[kWarpPanels][kBlockSteps];
    float2 scales[kWarpPanels];
#pragma unroll
    for (int p = 0; p < kWarpPanels; ++p) {
      scales[p] =
          decode_block<kFormat>(decoder, weights + (panel + p) * kPanelParts<kFormat>, lane, a[p]);
    }
#pragma unroll
    for (int term = 0; term < kTerms; ++term) {
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        const uint2 b[kBlockSteps] = {right_side<kTerms>(tokens, 0, term, token + t * 8, lane),
                                      right_side<kTerms>(tokens, 1, term, token + t * 8, lane)};
#pragma unroll
        for (int p = 0; p < kWarpPanels; ++p) sums[p][t].add(term, a[p], b, scales[p]);
      }
    }
  }

  // The same of bf16.
  __device__ __forceinline__ void multiply(const uint4* weights, const uint4* tokens, int warp,
                                           int lane) {
    const int panel = warp % kWarpsAlongRows * kWarpPanels;
    const int token = warp / kWarpsAlongRows * kTiles * 8;
#pragma unroll
    for (int step = 0; step < kGemmSteps; ++step) {
      uint4 a[kWarpPanels];
#pragma unroll
      for (int p = 0; p < kWarpPanels; ++p) {
        a[p] = weights[((panel + p) * kGemmSteps + step) * kStepLanes + lane];
      }
#pragma unroll
      for (int term = 0; term < kTerms; ++term) {
        uint2 b[kTiles];
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          b[t] = right_side<kTerms>(tokens, step, term, token + t * 8, lane);
        }
#pragma unroll
        for (int p = 0; p < kWarpPanels; ++p) {
#pragma unroll
          for (int t = 0; t < kTiles; ++t) sums[p][t].add(term, a[p], b[t]);
        }
      }
#pragma unroll
      for (int p = 0; p < kWarpPanels; ++p) {
#pragma unroll
        for (int t = 0; t < kTiles; ++t) sums[p][t].end_step(step);
      }
    }
  }

  // A segment is complete.
  __device__ __forceinline__ void add_up(bool first) {
#pragma unroll
    for (int p = 0; p < kWarpPanels; ++p) {
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        if constexpr (!kQuantized) sums[p][t].end_segment();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float sum;
          if constexpr (kQuantized) {
            sum = sums[p][t].total(i);
          } else {
            sum = std::exchange(sums[p][t].total[i], 0.0F);
          }
          totals[p][t][i] = first ? sum : __fadd_rn(totals[p][t][i], sum);
        }
        if constexpr (kQuantized) sums[p][t] = {};
      }
    }
  }
};

template <WeightFormat kFormat, int kTerms>
__device__ __forceinline__ void finish(const Accumulators<kFormat, kTerms>& of,
                                       const ProductArgs& args, int warp, int lane) {
  const int first_panel =
      static_cast<int>(blockIdx.y) * kGemmPanels + warp % kWarpsAlongRows * kWarpPanels;
  const int first_token = static_cast<int>(blockIdx.x) * gemm_tokens(kTerms) +
                          warp / kWarpsAlongRows * kWarpTiles<kTerms> * 8;
#pragma unroll
  for (int p = 0; p < kWarpPanels; ++p) {
    finish_tiles<kTerms, kWarpTiles<kTerms>>(args, first_token, (first_panel + p) * kPanelRows,
                                             &of.totals[p][0][0], lane);
  }
}

template <WeightFormat kFormat, int kTerms>
__global__ void __launch_bounds__(kThreads, 1)
    gemm_kernel(const __grid_constant__ ProductArgs args) {
  extern __shared__ uint4 shared[];
  constexpr int kStageParts = kWeightParts<kFormat> + kTokenParts<kTerms>;
  constexpr int kStages = kTerms == 1 ? 5 : 4;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int num_stages = args.steps / kGemmSteps;
  const int length = args.segment;

  release_successors();
  const Decoder<kFormat> decoder(lane);
  decoder.fill(static_cast<int>(threadIdx.x), kThreads);  // __syncthreads() follows.
  wait_for_predecessors();
  const auto start_stage = [&](int stage) {
    if (stage < num_stages) {
      uint4* to = shared + stage % kStages * kStageParts;
      copy_weights<kFormat>(to, args, stage * kGemmSteps);
      copy_tokens<kTerms>(to + kWeightParts<kFormat>, args, stage * kGemmSteps);
    }
    commit_copies();
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) start_stage(stage);

  Accumulators<kFormat, kTerms> accumulators{};
  for (int stage = 0; stage < num_stages; ++stage) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    start_stage(stage + kStages - 1);
    const uint4* at = shared + stage % kStages * kStageParts;
    if constexpr (kFormat == WeightFormat::kBf16) {
      accumulators.multiply(at, at + kWeightParts<kFormat>, warp, lane);
    } else {
      accumulators.multiply_block(decoder, at, at + kWeightParts<kFormat>, warp, lane);
    }
    const int done = (stage + 1) * kGemmSteps;
    if (done % length == 0 || done == args.steps) accumulators.add_up(done <= length);
  }
  finish(accumulators, args, warp, lane);
}

using Kernel = void (*)(ProductArgs);

Kernel kernel_of(WeightFormat format, int num_terms) {
  using enum WeightFormat;
  switch (format) {
    case kQ8:
      return num_terms == 1 ? gemm_kernel<kQ8, 1> : gemm_kernel<kQ8, 3>;
    case kQ4:
      return num_terms == 1 ? gemm_kernel<kQ4, 1> : gemm_kernel<kQ4, 3>;
    default:
      return num_terms == 1 ? gemm_kernel<kBf16, 1> : gemm_kernel<kBf16, 3>;
  }
}

}  // namespace

void launch_gemm(const ProductArgs& args, const Launch& how) {
  const GemmPlan plan =
      plan_gemm(args.num_panels, step_bytes(args.format), args.num_terms, args.num_tokens);
  launch(kernel_of(args.format, args.num_terms),
         dim3(static_cast<unsigned>(plan.token_tiles), static_cast<unsigned>(plan.row_tiles)),
         dim3(kThreads), plan.shared_bytes, how, args);
}

void prepare_gemm() {
  using enum WeightFormat;
  for (const WeightFormat format : {kBf16, kQ8, kQ4}) {
    for (const int terms : {1, 3}) {
      const GemmPlan plan = plan_gemm(kGemmPanels, step_bytes(format), terms, 1);
      cudaFuncSetAttribute(kernel_of(format, terms), cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(plan.shared_bytes));
    }
  }
}

}  // namespace trtmc::cuda
