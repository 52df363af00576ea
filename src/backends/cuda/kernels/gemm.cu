// y = W x for many tokens. A block makes a tile of 128 rows by 128 tokens (64 with three terms),
// each of its sixteen warps 32 by 32 (16) of it. Weights and terms lie in memory as the tensor core
// takes them, so that stages are copied to shared memory as they are (cp.async, several on their
// way) and read from there 16 or 8 bytes a lane without conflicts.
//
// Tokens are the faster index of the grid: the blocks that run together share few panels of W, and
// all of x stays in the second-level cache.
#include "backends/cuda/kernels/copy_async.cuh"
#include "backends/cuda/kernels/gemm.h"
#include "backends/cuda/kernels/product_output.cuh"

namespace trtmc::cuda {
namespace {

constexpr int kThreads = kGemmWarps * static_cast<int>(kWarp);
constexpr int kWarpPanels = 2;
// Of 8 tokens. Three terms need more registers for sums.
template <int kTerms>
constexpr int kWarpTiles = gemm_tokens(kTerms) / (8 * kGemmWarps / (kGemmPanels / kWarpPanels));
constexpr int kWarpsAlongRows = kGemmPanels / kWarpPanels;
constexpr int kWeightParts = kGemmPanels * kGemmSteps * kStepLanes;  // Of a stage, 16 bytes each.
static_assert(kGemmSteps % kExactSteps == 0 && kPieceSteps % kGemmSteps == 0);

template <int kTerms>
constexpr int kTokenParts = kGemmSteps* kTerms* gemm_tokens(kTerms) * 2;

// [panel][step][lane] of W.
__device__ __forceinline__ void copy_weights(uint4* to, const ProductArgs& args, int first_step) {
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kWeightParts; i += kThreads) {
    const int panel = static_cast<int>(blockIdx.y) * kGemmPanels + i / (kGemmSteps * kStepLanes);
    const int step = first_step + i / kStepLanes % kGemmSteps;
    const bool wanted = panel < args.num_panels;
    const int64_t part = wanted ? weight_part(panel, step, args.steps) + i % kStepLanes : 0;
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

template <int kTerms>
struct Accumulators {
  static constexpr int kTiles = kWarpTiles<kTerms>;
  TermSums<kTerms> sums[kWarpPanels][kTiles];
  float totals[kWarpPanels][kTiles][4];

  // One stage.
  __device__ __forceinline__ void multiply(const uint4* weights, const uint4* tokens, int warp,
                                           int lane) {
    const int panel = warp % kWarpsAlongRows * kWarpPanels;
    const int token = warp / kWarpsAlongRows * kTiles * 8 + lane / 4;
    const auto* words = reinterpret_cast<const uint32_t*>(tokens);
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
          constexpr int kHalf = gemm_tokens(kTerms) * kHalfWords;
          const uint32_t* word =
              words + (step * kTerms + term) * 2 * kHalf + (token + t * 8) * kHalfWords + lane % 4;
          b[t] = make_uint2(word[0], word[kHalf]);
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
        sums[p][t].end_segment();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& sum = sums[p][t].total[i];
          totals[p][t][i] = first ? sum : __fadd_rn(totals[p][t][i], sum);
          sum = 0;
        }
      }
    }
  }
};

template <int kTerms>
__device__ __forceinline__ void finish(const Accumulators<kTerms>& of, const ProductArgs& args,
                                       int warp, int lane) {
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

template <int kTerms>
__global__ void __launch_bounds__(kThreads, 1)
    gemm_kernel(const __grid_constant__ ProductArgs args) {
  extern __shared__ uint4 shared[];
  constexpr int kStageParts = kWeightParts + kTokenParts<kTerms>;
  constexpr int kStages = kTerms == 1 ? 5 : 4;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int num_stages = args.steps / kGemmSteps;
  const int length = segment_steps(args.steps);

  release_successors();
  wait_for_predecessors();
  const auto start_stage = [&](int stage) {
    if (stage < num_stages) {
      uint4* to = shared + stage % kStages * kStageParts;
      copy_weights(to, args, stage * kGemmSteps);
      copy_tokens<kTerms>(to + kWeightParts, args, stage * kGemmSteps);
    }
    commit_copies();
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) start_stage(stage);

  Accumulators<kTerms> accumulators{};
  for (int stage = 0; stage < num_stages; ++stage) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    start_stage(stage + kStages - 1);
    const uint4* at = shared + stage % kStages * kStageParts;
    accumulators.multiply(at, at + kWeightParts, warp, lane);
    const int done = (stage + 1) * kGemmSteps;
    if (done % length == 0 || done == args.steps) accumulators.add_up(done <= length);
  }
  finish<kTerms>(accumulators, args, warp, lane);
}

}  // namespace

void launch_gemm(const ProductArgs& args, const GemmPlan& plan, const Launch& how) {
  const auto kernel = args.num_terms == 1 ? gemm_kernel<1> : gemm_kernel<3>;
  launch(kernel,
         dim3(static_cast<unsigned>(plan.token_tiles), static_cast<unsigned>(plan.row_tiles)),
         dim3(kThreads), plan.shared_bytes, how, args);
}

void prepare_gemm() {
  cudaFuncSetAttribute(gemm_kernel<1>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(plan_gemm(kGemmPanels, 1, 1).shared_bytes));
  cudaFuncSetAttribute(gemm_kernel<3>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(plan_gemm(kGemmPanels, 3, 1).shared_bytes));
}

}  // namespace trtmc::cuda
