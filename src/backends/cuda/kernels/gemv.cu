// y = W x for up to 16 tokens, on the tensor cores although it is bound by memory: several terms of
// several tokens cost little more there than one, and gemm can follow the same order of sums.
//
// A block takes tiles of one panel (or a gate and an up panel) in turn, its warps take the segments
// of k in turn. The weights of a warp's next half segment are on their way while the tensor core
// works on this one, across segments, panels and tiles; the first are asked for before the kernel
// in front has ended.
#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/gemv.h"

namespace trtmc::cuda {
namespace {

constexpr int kHalfSteps = kSegmentSteps / 2;
constexpr int kStepLanes = 32;  // 16 bytes each.

struct KernelArgs {
  ProductArgs product;
  GemvPlan plan;
};

// One of a warp's pieces of work: a segment of a panel.
struct Unit {
  int tile, panel, segment;
};

__device__ __forceinline__ void advance(Unit& unit, const KernelArgs& args, int warp) {
  if (++unit.panel < args.plan.panels_per_tile) return;
  unit.panel = 0;
  unit.segment += args.plan.warps;
  if (unit.segment < num_segments(args.product.steps)) return;
  unit.segment = warp;
  unit.tile += static_cast<int>(gridDim.x);
}

__device__ __forceinline__ void load_half(uint4 (&to)[kHalfSteps], const KernelArgs& args,
                                          const Unit& unit, int half, int lane) {
  const int first = unit.segment * kSegmentSteps + half * kHalfSteps;
  const int64_t panel = int64_t{unit.tile} * args.plan.panels_per_tile + unit.panel;
  const uint4* from =
      static_cast<const uint4*>(args.product.weights) +
      (panel * args.product.panel_distance * args.product.steps + first) * kStepLanes + lane;
  const bool wanted = unit.tile < args.plan.num_tiles;
#pragma unroll
  for (int i = 0; i < kHalfSteps; ++i) {
    to[i] = wanted && first + i < args.product.steps ? load_streamed(from + i * kStepLanes)
                                                     : make_uint4(0, 0, 0, 0);
  }
}

// A warp's part of the activations, in the order of a lane's loads: [step][term][token][8 words].
template <int kTerms>
__device__ __forceinline__ void stage(uint32_t* staged, const KernelArgs& args,
                                      const float* squares, const float* norm, int segment,
                                      int lane) {
  const ProductArgs& product = args.product;
  const int tokens = product.num_tokens;
  const int first_step = segment * kSegmentSteps;
  if (product.norm == nullptr) {
    // Lanes share a token's 16 bytes of a step and term; tokens follow each other.
    constexpr int kSteps = kSegmentSteps * kTerms;
    for (int i = lane; i < kSteps * 2; i += kStepLanes) {
      const int step = first_step + i / 2 / kTerms;
      const int64_t word =
          term_word(step, i / 2 % kTerms, kTerms, product.in.capacity, 0, 0) + i % 2 * 4;
      uint4* to = reinterpret_cast<uint4*>(staged) + i / 2 * tokens * 2 + i % 2;
#pragma unroll 4
      for (int token = 0; token < tokens; ++token) {
        uint4 words = make_uint4(0, 0, 0, 0);
        if (step < product.steps) {
          words = *reinterpret_cast<const uint4*>(product.in.words + word + token * kStepWords);
        }
        to[token * 2] = words;
      }
    }
  } else {
    constexpr int kPairs = kSegmentSteps * kStepColumns / 2;
    for (int token = 0; token < tokens; ++token) {
      const float inverse =
          inverse_rms(squares + token * num_segments(product.steps), product.width, product.eps);
      const int row = product.rows == nullptr ? token : product.rows[token];
      const float* x = product.x + int64_t{row} * product.x_stride;
#pragma unroll
      for (int pair = lane; pair < kPairs; pair += kStepLanes) {
        const int column = first_step * kStepColumns + pair * 2;
        float a = 0, b = 0;
        if (column < product.width) a = normed(x[column], inverse, norm[column]);
        if (column + 1 < product.width) b = normed(x[column + 1], inverse, norm[column + 1]);
        uint32_t words[kTerms];
        split<kTerms>(a, b, words);
#pragma unroll
        for (int term = 0; term < kTerms; ++term) {
          staged[term_word(pair / kStepWords, term, kTerms, tokens, token, pair % kStepWords)] =
              words[term];
        }
      }
    }
  }
  __syncwarp();
}

// Adds half a segment to `sums`.
template <int kTerms, int kTiles>
__device__ __forceinline__ void multiply_half(TermSums<kTerms> (&sums)[kTiles],
                                              const uint4 (&weights)[kHalfSteps],
                                              const uint32_t* staged, int half, int tokens,
                                              int lane) {
#pragma unroll
  for (int i = 0; i < kHalfSteps; ++i) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int term = 0; term < kTerms; ++term) {
        const int token = tile * 8 + lane / 4;
        uint2 b = make_uint2(0, 0);
        if (token < tokens) {
          b = *reinterpret_cast<const uint2*>(
              staged + (((half * kHalfSteps + i) * kTerms + term) * tokens + token) * kStepWords +
              lane % 4 * 2);
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
__device__ __forceinline__ void multiply_half_packed(TermSums<1>& sums, float (&promoted)[4],
                                                     const uint4 (&weights)[kHalfSteps],
                                                     const uint32_t* staged, int half, int tokens,
                                                     int lane) {
  const int term = lane / 4 / 2;
  const int token = lane / 4 % 2;
  const bool used = term < 3 && token < tokens;
  const uint32_t* from = staged + (half * kHalfSteps * 3 + term) * tokens * kStepWords +
                         token * kStepWords + lane % 4 * 2;
  const bool first = lane % 4 == 0;
#pragma unroll
  for (int i = 0; i < kHalfSteps; ++i) {
    uint2 b = make_uint2(0, 0);
    if (used) b = *reinterpret_cast<const uint2*>(from + i * 3 * tokens * kStepWords);
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

// The sums of a unit, to where the block adds them up: [segment][panel][token][row].
template <int kTerms, int kTiles>
__device__ __forceinline__ void keep(const TermSums<kTerms> (&sums)[kTiles], float* partial,
                                     const KernelArgs& args, const Unit& unit, int lane) {
  const int tokens = args.product.num_tokens;
  float* to = partial +
              (unit.segment * args.plan.panels_per_tile + unit.panel) * tokens * kPanelRows +
              lane / 4 * 2;
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

// Two neighbouring rows of a panel, one token: segment after segment.
__device__ __forceinline__ float2 total_of(const float* partial, const KernelArgs& args, int panel,
                                           int token, int pair) {
  const int tokens = args.product.num_tokens;
  const int distance = args.plan.panels_per_tile * tokens * kPanelRows;
  const float* from = partial + (panel * tokens + token) * kPanelRows + pair * 2;
  float2 total = *reinterpret_cast<const float2*>(from);
  const int segments = num_segments(args.product.steps);
#pragma unroll 4
  for (int segment = 1; segment < segments; ++segment) {
    const float2 next = *reinterpret_cast<const float2*>(from + segment * distance);
    total.x = __fadd_rn(total.x, next.x);
    total.y = __fadd_rn(total.y, next.y);
  }
  return total;
}

template <int kTerms>
__device__ __forceinline__ void finish_tile(const float* partial, const KernelArgs& args,
                                            int tile) {
  const ProductArgs& product = args.product;
  constexpr int kPairs = kPanelRows / 2;
  for (int i = static_cast<int>(threadIdx.x); i < kPairs * product.num_tokens;
       i += static_cast<int>(blockDim.x)) {
    const int token = i / kPairs;
    const int pair = i % kPairs;
    const int row = tile * kPanelRows + pair * 2;
    const float2 first = total_of(partial, args, 0, token, pair);
    if (product.epilogue == Epilogue::kSwiglu) {
      const float2 up = total_of(partial, args, 1, token, pair);
      store_terms<kTerms>(product.out_terms, token, row, silu_times(first.x, up.x),
                          silu_times(first.y, up.y));
      continue;
    }
    float* out = product.out + token * product.out_stride + row;
    const bool adds = product.epilogue == Epilogue::kAdd;
    if (row < product.num_rows) out[0] = adds ? __fadd_rn(out[0], first.x) : first.x;
    if (row + 1 < product.num_rows) out[1] = adds ? __fadd_rn(out[1], first.y) : first.y;
  }
}

template <int kTerms, int kTiles, bool kPacked = false>
__global__ void __launch_bounds__(kMostGemvWarps* kWarp, 1)
    gemv_kernel(const __grid_constant__ KernelArgs args) {
  extern __shared__ uint4 shared[];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const ProductArgs& product = args.product;
  const int staged_words = kSegmentSteps * kTerms * product.num_tokens * kStepWords;
  const int partial_floats =
      num_segments(product.steps) * args.plan.panels_per_tile * product.num_tokens * kPanelRows;
  auto* staged = reinterpret_cast<uint32_t*>(shared) + warp * staged_words;
  float* partial = reinterpret_cast<float*>(shared) + args.plan.warps * staged_words;
  float* squares = partial + 2 * partial_floats;  // [num_tokens][segments]
  float* norm = squares + product.num_tokens * num_segments(product.steps);  // [width]

  uint4 first_half[kHalfSteps], second_half[kHalfSteps];
  Unit unit{static_cast<int>(blockIdx.x), 0, warp};
  const bool works = warp < num_segments(product.steps);
  if (works) load_half(first_half, args, unit, 0, lane);

  release_successors();
  if (product.norm != nullptr) {
    for (int i = static_cast<int>(threadIdx.x); i < product.width;
         i += static_cast<int>(blockDim.x)) {
      norm[i] = product.norm[i];
    }
  }
  wait_for_predecessors();
  if (product.norm != nullptr) {
    for (int token = 0; token < product.num_tokens; ++token) {
      const int row = product.rows == nullptr ? token : product.rows[token];
      const float* x = product.x + int64_t{row} * product.x_stride;
      for (int i = warp; i < num_segments(product.steps); i += args.plan.warps) {
        squares[token * num_segments(product.steps) + i] =
            segment_squares(x, product.width, i, lane);
      }
    }
    __syncthreads();
  }

  int staged_segment = -1;
  for (int tile = static_cast<int>(blockIdx.x), round = 0; tile < args.plan.num_tiles;
       tile += static_cast<int>(gridDim.x), ++round) {
    float* sums_of_tile = partial + round % 2 * partial_floats;
    while (works && unit.tile == tile) {
      if (staged_segment != unit.segment) {
        __syncwarp();
        stage<kTerms>(staged, args, squares, norm, unit.segment, lane);
        staged_segment = unit.segment;
      }
      load_half(second_half, args, unit, 1, lane);
      const Unit done = unit;
      const int tokens = product.num_tokens;
      if constexpr (kPacked) {
        TermSums<1> sums[1];
        float promoted[4] = {};
        multiply_half_packed(sums[0], promoted, first_half, staged, 0, tokens, lane);
        advance(unit, args, warp);
        load_half(first_half, args, unit, 0, lane);
        multiply_half_packed(sums[0], promoted, second_half, staged, 1, tokens, lane);
        end_packed_segment(sums[0], promoted);
        keep(sums, sums_of_tile, args, done, lane);
      } else {
        TermSums<kTerms> sums[kTiles];
        multiply_half(sums, first_half, staged, 0, tokens, lane);
        advance(unit, args, warp);
        load_half(first_half, args, unit, 0, lane);
        multiply_half(sums, second_half, staged, 1, tokens, lane);
#pragma unroll
        for (int tile_of_tokens = 0; tile_of_tokens < kTiles; ++tile_of_tokens) {
          sums[tile_of_tokens].end_segment();
        }
        keep(sums, sums_of_tile, args, done, lane);
      }
    }
    __syncthreads();
    finish_tile<kTerms>(sums_of_tile, args, tile);
  }
}

using Kernel = void (*)(KernelArgs);

Kernel kernel_of(int num_terms, int num_tokens) {
  if (num_terms == 1) return num_tokens <= 8 ? gemv_kernel<1, 1> : gemv_kernel<1, 2>;
  if (num_tokens <= 2) return gemv_kernel<3, 1, true>;
  return num_tokens <= 8 ? gemv_kernel<3, 1> : gemv_kernel<3, 2>;
}

}  // namespace

void launch_gemv(const ProductArgs& args, const GemvPlan& plan, const Launch& how) {
  launch(kernel_of(args.num_terms, args.num_tokens), dim3(static_cast<unsigned>(plan.blocks)),
         dim3(static_cast<unsigned>(plan.warps) * kWarp), plan.shared_bytes, how,
         KernelArgs{args, plan});
}

void prepare_gemv(int shared_bytes) {
  for (const int terms : {1, 3}) {
    for (const int tokens : {1, 8, kMostGemvTokens}) {
      cudaFuncSetAttribute(kernel_of(terms, tokens), cudaFuncAttributeMaxDynamicSharedMemorySize,
                           shared_bytes);
    }
  }
}

}  // namespace trtmc::cuda
