// How gemm_wgmma.cu makes sums: the shapes of its tiles, the warp that fetches their stages and the
// warp groups that multiply them.
#pragma once

#include "backends/cuda/kernels/hopper.cuh"
#include "backends/cuda/kernels/launch_plan.h"
#include "backends/cuda/kernels/product_output.cuh"

namespace trtmc::cuda {

constexpr int kGroupThreads = 128;  // A warp group makes kGroupPanels panels, one a warp.
[[maybe_unused]] constexpr int kHalfBytes = 16;  // Of a token's terms in half a step.
[[maybe_unused]] constexpr int kUnitSteps = 2;   // That are multiplied at once.
// Of a thread that fetches, one that finishes, one that multiplies without and beside those.
[[maybe_unused]] constexpr int kSpareRegisters = 40, kFinishingRegisters = 72;
[[maybe_unused]] constexpr int kTakenRegisters = 232, kTakenBesideFinishing = 200;
static_assert(kStageSteps == 2 * kUnitSteps && kUnitSteps == kExactSteps);

// Who makes a tile's sums.
enum class Way {
  kAlone,  // One block.
  kSplit,  // A cluster, each block a segment.
};

struct WgmmaArgs {
  ProductArgs product;
  WgmmaPlan plan;
};

template <int kTerms_, int kGroups_, int kTokens_, int kStages_, Way kWay_,
          WeightFormat kFormat_ = WeightFormat::kBf16>
struct Shape {
  static constexpr int kTerms = kTerms_, kGroups = kGroups_, kTokens = kTokens_;
  static constexpr int kStages = kStages_;
  static constexpr WeightFormat kFormat = kFormat_;
  static constexpr bool kQuantized = kFormat != WeightFormat::kBf16;
  // What is fetched at once: of four panels of quantised weights a piece lies together.
  static constexpr int kStageSteps = kQuantized ? kPieceSteps : cuda::kStageSteps;
  static constexpr int kPanelParts = piece_bytes(kFormat) / 16 * kStageSteps / kPieceSteps;
  static constexpr Way kWay = kWay_;
  static constexpr int kPanels = kGroups * kGroupPanels;
  static constexpr int kRows = kPanels * kPanelRows;
  static constexpr int kHalves = kStageSteps * kTerms * 2;
  // A large tile has a multiprocessor for itself. Its warp groups get the registers that the others
  // give away, and leave their sums to one that finishes them while they make the next tile's.
  static constexpr bool kLarge = kGroups * kTokens * kTerms >= 256;
  static constexpr bool kFinishes = kLarge && kWay == Way::kAlone;
  static constexpr int kBlocks = kLarge || kTokens == 128                 ? 1
                                 : kQuantized || kGroups * kTokens >= 128 ? 2
                                                                          : 3;
  static constexpr int kConsumers = kGroups * kGroupThreads;
  static constexpr int kFinishers = kFinishes ? kGroupThreads : 0;
  static constexpr int kThreads = kConsumers + kFinishers + (kLarge ? kGroupThreads : kStepLanes);
  static constexpr int kPitch = kRows + 4;  // So that leave() meets no bank twice.

  struct Stage {
    uint4 weights[kGroups][kGroupPanels][kPanelParts];  // bf16: [step][lane]
    uint4 terms[kHalves][kTokens];
  };
  // What is left lies over the stages or, if these go on, behind them.
  using Left = float[kTokens][kPitch];
  static constexpr size_t kSharedBytes = sizeof(Stage) * kStages + (kFinishes ? sizeof(Left) : 0);
  static_assert(sizeof(Left) <= kSharedBytes);
};

#ifdef TRTMC_HAS_WGMMA

// A block's share of the work: steps [first_step, last_step) of a tile.
struct Tile {
  int first_panel, first_token;
  int first_step, last_step;
};

// Tile `index` of those that blocks or clusters take in turn.
template <typename Of>
__device__ __forceinline__ Tile tile_of(const WgmmaArgs& args, int index, int rank) {
  // Those that run together share rows and tokens alike: bands of kBand token tiles, row by row.
  constexpr int kBand = 16;
  const WgmmaPlan& plan = args.plan;
  const int band = index / (kBand * plan.row_tiles);
  const int width = min(kBand, plan.token_tiles - band * kBand);
  const int in_band = index - band * kBand * plan.row_tiles;
  const int steps = args.product.steps;
  Tile tile{in_band / width * Of::kPanels, (band * kBand + in_band % width) * Of::kTokens, 0,
            steps};
  if constexpr (Of::kWay == Way::kSplit) {
    tile.first_step = rank * segment_steps(steps);
    tile.last_step = min(steps, tile.first_step + segment_steps(steps));
  }
  return tile;
}

// ---- The warp that fetches

template <typename Of>
struct Producer {
  const ProductArgs& args;
  typename Of::Stage* stages;
  uint64_t* full;

  // Says what will come, and asks for the weights, which depend on no kernel in front.
  __device__ __forceinline__ void copy_weights(const Tile& tile, int step, int slot) const {
    arrive_expecting(&full[slot], sizeof(typename Of::Stage));
#pragma unroll
    for (int group = 0; group < Of::kGroups; ++group) {
      // Behind the last panel: any rows, nobody looks at the sums.
      const int panel =
          min(tile.first_panel + group * kGroupPanels, args.num_panels - kGroupPanels);
      const int64_t part =
          Of::kQuantized ? quantized_piece(panel, step / kPieceSteps, args.steps) * Of::kPanelParts
                         : weight_part(panel, step, args.steps);
      copy_bulk(stages[slot].weights[group], static_cast<const uint4*>(args.weights) + part,
                sizeof(stages[slot].weights[group]), &full[slot]);
    }
  }
  __device__ __forceinline__ void copy_terms(const Tile& tile, int step, int slot) const {
    auto& terms = stages[slot].terms;
    const int64_t halves = int64_t{args.in.steps} * Of::kTerms * 2;
    const int64_t half = tile.first_token / Of::kTokens * halves + int64_t{step} * Of::kTerms * 2;
    const uint32_t* from = args.in.words + half * Of::kTokens * kHalfWords;
    copy_bulk(terms, from, sizeof(terms), &full[slot]);
  }
};

template <typename Of>
__device__ __forceinline__ void fetch(const WgmmaArgs& args, const Producer<Of>& producer,
                                      uint64_t* empty, int first_tile, int num_tiles,
                                      int tile_distance, int rank) {
  RingPlace<Of::kStages> place;
  const Tile first = tile_of<Of>(args, first_tile, rank);
  const int ahead = min(Of::kStages, (first.last_step - first.first_step) / Of::kStageSteps);
  for (int i = 0; i < ahead; ++i) {
    producer.copy_weights(first, first.first_step + i * Of::kStageSteps, i);
  }
  wait_for_predecessors();
  for (int i = 0; i < ahead; ++i) {
    producer.copy_terms(first, first.first_step + i * Of::kStageSteps, i);
    place.advance();
  }
  for (int index = first_tile; index < num_tiles; index += tile_distance) {
    const Tile tile = tile_of<Of>(args, index, rank);
    int step = tile.first_step + (index == first_tile ? ahead * Of::kStageSteps : 0);
    for (; step < tile.last_step; step += Of::kStageSteps) {
      wait_for(&empty[place.stage], place.parity ^ 1);
      producer.copy_weights(tile, step, place.stage);
      producer.copy_terms(tile, step, place.stage);
      place.advance();
    }
  }
}

// ---- The warp groups that multiply

template <typename Of>
struct Consumer {
  static constexpr int kCount = Of::kTokens / 2;
  using Sums = float[kCount];
  const typename Of::Stage* stages;
  uint64_t* full;
  uint64_t* empty;
  RingPlace<Of::kStages> place;
  int group, warp, lane;

  __device__ __forceinline__ void load(uint4 (&a)[kUnitSteps], int unit) const {
#pragma unroll
    for (int i = 0; i < kUnitSteps; ++i) {
      a[i] = stages[place.stage].weights[group][warp][(unit * kUnitSteps + i) * kStepLanes + lane];
    }
  }
  __device__ __forceinline__ void wait_for_stage() const {
    wait_for(&full[place.stage], place.parity);
  }
  // It may be filled again.
  __device__ __forceinline__ void release(int slot) const {
    __syncwarp();
    if (lane == 0) arrive(&empty[slot]);
  }
  __device__ __forceinline__ uint64_t terms_at(int step, int term) const {
    return matrix_at(stages[place.stage].terms[(step * Of::kTerms + term) * 2],
                     Of::kTokens * kHalfBytes, 8 * kHalfBytes);
  }

  __device__ __forceinline__ void multiply(Sums& sums, const uint4 (&a)[kUnitSteps], int unit,
                                           bool adds) const {
    begin_products();
#pragma unroll
    for (int i = 0; i < kUnitSteps; ++i) {
      Wgmma<Of::kTokens>::multiply_add(sums, a[i], terms_at(unit * kUnitSteps + i, 0),
                                       adds || i > 0);
    }
    commit_products();
  }

  // A segment of one term. A unit's weights are loaded while the unit before it is at work.
  __device__ __forceinline__ void multiply_segment(Sums& sums, int steps) {
    uint4 even[kUnitSteps], odd[kUnitSteps];
    wait_for_stage();
    load(even, 0);
    multiply(sums, even, 0, false);
    for (int step = kStageSteps;; step += kStageSteps) {
      load(odd, 1);
      multiply(sums, odd, 1, true);
      wait_for_products<1>();
      const int last = place.stage;
      place.advance();
      if (step >= steps) {
        wait_for_products<0>();
        receive(sums);
        release(last);
        return;
      }
      wait_for_stage();
      load(even, 0);
      multiply(sums, even, 0, true);
      wait_for_products<1>();
      release(last);
    }
  }

  // A segment of three terms.
  __device__ __forceinline__ void multiply_segment_exactly(Sums& sums, int steps) {
    Sums first, second, third;
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] = 0;
    for (int step = 0; step < steps; step += kStageSteps) {
      uint4 a[2][kUnitSteps];
      wait_for_stage();
      load(a[0], 0);
      load(a[1], 1);
#pragma unroll
      for (int unit = 0; unit < 2; ++unit) {
        begin_products();
#pragma unroll
        for (int i = 0; i < kUnitSteps; ++i) {
          const int at = unit * kUnitSteps + i;
          const bool adds = step > 0 || at > 0;
          Wgmma<Of::kTokens>::multiply_add(first, a[unit][i], terms_at(at, 0), i > 0);
          Wgmma<Of::kTokens>::multiply_add(second, a[unit][i], terms_at(at, 1), adds);
          Wgmma<Of::kTokens>::multiply_add(third, a[unit][i], terms_at(at, 2), adds);
        }
        commit_products();
        wait_for_products<0>();
        receive(first);
        if (unit == 1) release(place.stage);
        add(sums, first);
      }
      place.advance();
    }
    receive(second);
    receive(third);
    add(second, third);
    add(sums, second);
  }

  __device__ __forceinline__ static void add(Sums& sums, const Sums& more) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] = __fadd_rn(sums[i], more[i]);
  }
};

#endif

}  // namespace trtmc::cuda
