// y = W x for up to 16 tokens (8 of three terms), W quantised.
//
// A block takes panels in turn, each of its warps segments of k in turn. Segments come to the
// warp's ring in shared memory; several are on their way, across panels, the first of them before
// the kernel in front has ended. Where each warp has one segment, its activations are staged once;
// else they come through the ring beside the weights. One warp more finishes panels, so that nobody
// who makes sums waits for others.
//
// What bounds it is instructions and their latency more than memory: hence a loop that does for a
// whole segment once what need not be done for each piece.
#include "backends/cuda/kernels/gemv_parts.cuh"
#include "backends/cuda/kernels/gemv_quantized.h"
#include "backends/cuda/kernels/quantized.cuh"

namespace trtmc::cuda {
namespace {

struct KernelArgs {
  ProductArgs product;
  QuantizedGemvPlan plan;
};

// A warp's way through its segments of panels. A segment is two pieces, the last one of a sum may
// be one.
template <WeightFormat kFormat>
struct Place {
  static constexpr int kParts = piece_bytes(kFormat) / 16;
  int panel, segment;
  const uint4* from;  // What a lane copies first.

  __device__ __forceinline__ Place(const KernelArgs& args, int warp, int lane)
      : panel(static_cast<int>(blockIdx.x)), segment(warp) {
    find(args.product, lane);
  }
  __device__ __forceinline__ int step() const { return segment * kQuantizedSegment; }
  __device__ __forceinline__ bool has_two(const ProductArgs& product) const {
    return step() + kPieceSteps < product.steps;
  }
  __device__ __forceinline__ void advance(const KernelArgs& args, int warp, int lane) {
    segment += args.plan.warps;
    if (segment >= args.plan.segments) {
      segment = warp;
      panel += static_cast<int>(gridDim.x);
    }
    find(args.product, lane);
  }

 private:
  __device__ __forceinline__ void find(const ProductArgs& product, int lane) {
    const auto pieces = static_cast<unsigned>(product.steps) / kPieceSteps;
    const auto of = static_cast<unsigned>(panel);
    const auto piece =
        (of / kGroupPanels * pieces + 2 * static_cast<unsigned>(segment)) * kGroupPanels +
        of % kGroupPanels;
    from = static_cast<const uint4*>(product.weights) + uint64_t{piece} * kParts + lane;
  }
};

// Until at most `slots` - 1 of the groups that this thread has committed are on their way.
__device__ __forceinline__ void wait_for_first_of(int slots) {
  static_assert(kMostRingSlots == 4);
  if (slots == 2) {
    wait_for_copies<1>();
  } else {
    wait_for_copies<3>();
  }
}

// Of one warp, all lanes of which call all functions. In a slot: a segment of a panel and, if the
// terms of activations come with it, these.
template <WeightFormat kFormat, int kTerms>
struct Ring {
  static constexpr int kParts = piece_bytes(kFormat) / 16;
  uint4* slots;
  int slot_parts;
  int count;
  int lane;
  int next = 0;

  __device__ __forceinline__ uint4* at(int slot) const { return slots + slot * slot_parts; }
  __device__ __forceinline__ void copy_weights(const ProductArgs& product, uint4* slot,
                                               const Place<kFormat>& place) const {
    if (place.panel >= product.num_panels) return;
    copy_piece(slot + lane, place.from);
    if (place.has_two(product)) {
      copy_piece(slot + lane + kParts, place.from + kGroupPanels * kParts);
    }
  }
  // `reciprocal`: of the number of tokens, as reciprocal_of() has it.
  __device__ __forceinline__ void copy_terms(const ProductArgs& product, uint4* slot,
                                             const Place<kFormat>& place, int reciprocal) const {
    if (place.panel >= product.num_panels) return;
    const int tokens = product.num_tokens;
    const int halves =
        (place.has_two(product) ? kQuantizedSegment : kPieceSteps) * kTerms * 2 * tokens;
    const uint32_t* from =
        product.in.words + int64_t{place.step()} * kTerms * 2 * kSmallestBlock * kHalfWords;
    for (int i = lane; i < halves; i += kStepLanes) {
      const int half = i * reciprocal >> kReciprocalBits;
      copy_async(slot + 2 * kParts + i,
                 from + (half * kSmallestBlock + i - half * tokens) * kHalfWords, true);
    }
  }
  __device__ __forceinline__ void advance() { next = next + 1 == count ? 0 : next + 1; }

  // For quotients of what is below 2^16 / 16 by up to 16 tokens.
  static constexpr int kReciprocalBits = 16;
  static __device__ __forceinline__ int reciprocal_of(int tokens) {
    return ((1 << kReciprocalBits) + tokens - 1) / tokens;
  }
  static_assert(kQuantizedSegment * kTerms * 2 * kMostGemvTokens < (1 << kReciprocalBits) / 16);

 private:
  static __device__ __forceinline__ void copy_piece(uint4* to, const uint4* from) {
    constexpr int kWhole = kParts / kStepLanes;
#pragma unroll
    for (int i = 0; i < kWhole; ++i) copy_async(to + i * kStepLanes, from + i * kStepLanes);
    if (threadIdx.x % kStepLanes < kParts % kStepLanes) {
      copy_async(to + kWhole * kStepLanes, from + kWhole * kStepLanes);
    }
  }
};

// The sums of a warp over the segment that it is in.
template <WeightFormat kFormat, int kTerms, int kTiles, bool kPacked>
struct PieceSums {
  static constexpr int kSumTerms = kPacked ? 1 : kTerms;
  // All right sides of a short segment fit into registers if they are those of one tile.
  static constexpr bool kHolds = kSumTerms * kTiles == 1;
  template <int kSteps>
  using Right = Fragments<kSumTerms, kTiles, kSteps>;
  ScaledSums<kSumTerms> of[kTiles];

  template <int kSteps>
  static __device__ __forceinline__ void load(Right<kSteps>& right, const uint32_t* staged,
                                              int first, int tokens, int lane) {
    if constexpr (kPacked) {
      right.load_packed(staged, first, tokens, lane);
    } else {
      right.load(staged, first, tokens, lane);
    }
  }

  // Block by block; `right_of(block, right)` gives both steps' right sides.
  template <typename RightOf>
  __device__ __forceinline__ void add(const Decoder<kFormat>& decoder, const uint4* piece, int lane,
                                      RightOf right_of) {
    const auto* bytes = reinterpret_cast<const std::byte*>(piece);
#pragma unroll
    for (int block = 0; block < kPieceBlocks; ++block) {
      uint4 a[kBlockSteps];
      const float2 scales =
          decode_block<kFormat>(decoder, bytes + block * block_bytes(kFormat), lane, a);
      Right<kBlockSteps> right;
      right_of(block, right);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
        for (int term = 0; term < kSumTerms; ++term) {
          const uint2 both[kBlockSteps] = {right.of[0][tile][term], right.of[1][tile][term]};
          of[tile].add(term, a, both, scales);
        }
      }
    }
  }
  // Right sides: staged from step `first` on.
  __device__ __forceinline__ void add_staged(const Decoder<kFormat>& decoder, const uint4* piece,
                                             const uint32_t* staged, int first, int tokens,
                                             int lane) {
    add(decoder, piece, lane, [&](int block, Right<kBlockSteps>& right) {
      load(right, staged, first + block * kBlockSteps, tokens, lane);
    });
  }
  // Held, from step kFirst on.
  template <int kFirst>
  __device__ __forceinline__ void add_held(const Decoder<kFormat>& decoder, const uint4* piece,
                                           const Right<kQuantizedSegment>& held, int lane) {
    add(decoder, piece, lane, [&](int block, Right<kBlockSteps>& right) {
#pragma unroll
      for (int i = 0; i < kBlockSteps; ++i) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
          for (int term = 0; term < kSumTerms; ++term) {
            right.of[i][tile][term] = held.of[kFirst + block * kBlockSteps + i][tile][term];
          }
        }
      }
    });
  }
  // The segment's sums, to where the block adds them up.
  __device__ __forceinline__ void end(float* partial, int segment, int tokens, int lane) {
    TermSums<1> totals[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        totals[tile].total[i] = of[tile].total(i);
        if constexpr (kPacked) {
          // The other terms' sums, from the lanes that have them, to those of the first.
          const float second = __shfl_down_sync(kFullMask, totals[tile].total[i], 1);
          const float third = __shfl_down_sync(kFullMask, totals[tile].total[i], 2);
          totals[tile].total[i] = added_terms(totals[tile].total[i], second, third);
        }
      }
    }
    keep(totals, partial, segment, tokens, lane);
    *this = {};
  }
};

template <WeightFormat kFormat, int kTerms, int kTiles, bool kNorms, bool kPacked>
__global__ void __launch_bounds__(((kNorms ? kMostGemvWarps : kMostQuantizedWarps) + 1) * kWarp,
                                  kNorms ? 2 : 1)
    gemv_quantized_kernel(const __grid_constant__ KernelArgs args) {
  using Sums = PieceSums<kFormat, kTerms, kTiles, kPacked>;
  extern __shared__ uint4 shared[];
  __shared__ TurnBarriers barriers;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const ProductArgs& product = args.product;
  const QuantizedGemvPlan& plan = args.plan;
  const int tokens = product.num_tokens;
  const bool keeps = kNorms || plan.keeps_terms;
  const int terms_parts = kQuantizedSegment * kTerms * tokens * kStepWords / 4;  // 16 bytes each
  const int partial_floats = plan.segments * tokens * kPanelRows;
  Ring<kFormat, kTerms> ring{nullptr, 2 * piece_bytes(kFormat) / 16 + (keeps ? 0 : terms_parts),
                             plan.slots, lane};
  uint4* after_rings = shared + plan.warps * plan.slots * ring.slot_parts;
  ring.slots = shared + warp * plan.slots * ring.slot_parts;
  const int staged_parts = keeps ? terms_parts : 0;
  auto* staged = reinterpret_cast<uint32_t*>(after_rings + warp * staged_parts);
  auto* partial = reinterpret_cast<float*>(after_rings + plan.warps * staged_parts);

  Place<kFormat> asked(args, warp, lane);
  const bool finishes = warp == plan.warps;
  if (!finishes) {
    for (int i = 0; i < plan.slots; ++i, asked.advance(args, warp, lane)) {
      ring.copy_weights(product, ring.at(i), asked);
      commit_copies();
    }
  }

  release_successors();
  if (warp == 0) barriers.init(plan.warps, lane);
  const Decoder<kFormat> decoder(lane);
  decoder.fill(static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
  __syncthreads();
  if (finishes) {
    wait_for_predecessors();
    Turn turn;
    for (int panel = static_cast<int>(blockIdx.x); panel < product.num_panels;
         panel += static_cast<int>(gridDim.x), turn.advance(plan.turns)) {
      join_sums<kTerms>(barriers, turn, partial + turn.turn * partial_floats, product, panel, lane);
    }
    return;
  }
  const int reciprocal = ring.reciprocal_of(tokens);
  Place<kFormat> now(args, warp, lane);
  if constexpr (kNorms) {
    Norm norm;
    norm.load(product, product.norm, now.step(), lane);
    wait_for_predecessors();
    float* squares = partial + plan.turns * partial_floats;  // [tokens][parts]
    norm.stage<kTerms>(staged, product, squares, now.step(), warp, plan.warps, lane);
  } else {
    wait_for_predecessors();
    if (keeps) {
      stage_terms<kTerms>(staged, product, warp, now.step(), lane);
    } else {
      Place<kFormat> place = now;
      for (int i = 0; i < plan.slots; ++i, place.advance(args, warp, lane)) {
        ring.copy_terms(product, ring.at(i), place, reciprocal);
      }
      commit_copies();
    }
    wait_for_copies<0>();
    __syncwarp();
  }
  typename Sums::template Right<Sums::kHolds ? kQuantizedSegment : 1> held;
  if constexpr (Sums::kHolds) {
    if (keeps) Sums::load(held, staged, 0, tokens, lane);
  }

  Turn turn;
  Sums sums;
  for (int panel = now.panel; panel < product.num_panels;
       panel += static_cast<int>(gridDim.x), turn.advance(plan.turns)) {
    float* sums_of_panel = partial + turn.turn * partial_floats;
    while (now.panel == panel) {
      wait_for_first_of(plan.slots);
      __syncwarp();
      uint4* slot = ring.at(ring.next);
      const bool two = now.has_two(product);
      if (!keeps || !Sums::kHolds) {
        const auto* terms = keeps ? staged : reinterpret_cast<uint32_t*>(slot + 2 * ring.kParts);
        sums.add_staged(decoder, slot, terms, 0, tokens, lane);
        if (two) sums.add_staged(decoder, slot + ring.kParts, terms, kPieceSteps, tokens, lane);
      } else if constexpr (Sums::kHolds) {
        sums.template add_held<0>(decoder, slot, held, lane);
        if (two) sums.template add_held<kPieceSteps>(decoder, slot + ring.kParts, held, lane);
      }
      __syncwarp();
      ring.copy_weights(product, slot, asked);
      if (!keeps) ring.copy_terms(product, slot, asked, reciprocal);
      commit_copies();
      ring.advance();
      asked.advance(args, warp, lane);
      begin_sums(barriers, turn);
      sums.end(sums_of_panel, now.segment, tokens, lane);
      now.advance(args, warp, lane);
    }
    end_sums(barriers, turn, lane);
  }
}

using Kernel = void (*)(KernelArgs);

template <WeightFormat kFormat, bool kNorms>
Kernel kernel_of(int num_terms, int num_tokens) {
  if (num_terms == 1) {
    return num_tokens <= 8 ? gemv_quantized_kernel<kFormat, 1, 1, kNorms, false>
                           : gemv_quantized_kernel<kFormat, 1, 2, false, false>;
  }
  if (num_tokens <= 2) return gemv_quantized_kernel<kFormat, 3, 1, kNorms, true>;
  return gemv_quantized_kernel<kFormat, 3, 1, false, false>;
}

Kernel kernel_of(WeightFormat format, bool norms, int num_terms, int num_tokens) {
  using enum WeightFormat;
  if (format == kQ8) {
    return norms ? kernel_of<kQ8, true>(num_terms, num_tokens)
                 : kernel_of<kQ8, false>(num_terms, num_tokens);
  }
  return norms ? kernel_of<kQ4, true>(num_terms, num_tokens)
               : kernel_of<kQ4, false>(num_terms, num_tokens);
}

}  // namespace

void launch_gemv_quantized(const ProductArgs& args, const QuantizedGemvPlan& plan,
                           const Launch& how) {
  launch(kernel_of(args.format, args.norm != nullptr, args.num_terms, args.num_tokens),
         dim3(static_cast<unsigned>(plan.blocks)),
         dim3(static_cast<unsigned>(plan.warps + 1) * kWarp), plan.shared_bytes, how,
         KernelArgs{args, plan});
}

void prepare_gemv_quantized(int shared_bytes) {
  for (const WeightFormat format : {WeightFormat::kQ8, WeightFormat::kQ4}) {
    const int table = format == WeightFormat::kQ4 ? kQ4TableBytes : 0;
    for (const int terms : {1, 3}) {
      for (const int tokens : {1, 8, kMostGemvTokens}) {
        for (const bool norms : {true, false}) {
          cudaFuncSetAttribute(kernel_of(format, norms, terms, tokens),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               shared_bytes - kGemvBarrierBytes - table);
          divide_memory(kernel_of(format, norms, terms, tokens), kAllShared);
        }
      }
    }
  }
}

static_assert(Decoder<WeightFormat::kQ4>::kTableBytes == kQ4TableBytes);

}  // namespace trtmc::cuda
