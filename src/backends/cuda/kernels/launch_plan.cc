#include "backends/cuda/kernels/launch_plan.h"

#include <algorithm>

#include "backends/cuda/kernels/product.h"
#include "backends/cuda/kernels/terms.h"
#include "base/check.h"

namespace trtmc::cuda {
namespace {

// Blocks of gemv that registers leave room for on a multiprocessor.
constexpr int kMostBlocksPerMultiprocessor = 2;
constexpr size_t kReservedSharedBytes = 1024;  // Of every block, by the system.
constexpr int kStagedSteps = 2 * kPieceSteps;

int divide_up(int a, int b) { return (a + b - 1) / b; }

constexpr size_t kManySumsBytes = 16384;

// Of panels whose sums a block keeps at once.
int gemv_turns(int segments, int num_tokens) {
  const size_t panel = static_cast<size_t>(segments * num_tokens) * kPanelRows * sizeof(float);
  return std::clamp(static_cast<int>(kManySumsBytes / panel), 2, kMostGemvTurns);
}

// What each warp stages of the activations, partial sums, sums of squares.
size_t gemv_shared_bytes(int warps, int staged_pairs, int steps, int num_terms, int num_tokens,
                         int norm_width) {
  const size_t tokens = static_cast<size_t>(num_tokens);
  const size_t staged =
      size_t{kStagedSteps} * static_cast<size_t>(num_terms) * tokens * kStepWords * 4;
  const size_t partial =
      static_cast<size_t>(num_segments(steps)) * tokens * kPanelRows * sizeof(float);
  const size_t squares = static_cast<size_t>(num_norm_parts(norm_width)) * tokens * sizeof(float);
  return static_cast<size_t>(warps * staged_pairs) * staged +
         static_cast<size_t>(gemv_turns(num_segments(steps), num_tokens)) * partial + squares;
}

}  // namespace

std::optional<GemvPlan> plan_gemv(const DeviceLimits& device, int num_panels, int steps,
                                  int num_terms, int num_tokens, int norm_width) {
  TRTMC_CHECK(num_tokens >= 1 && num_tokens <= kMostGemvTokens, "too many tokens for gemv");
  // A norm is staged once: each warp's segment has to be one pair.
  const bool one_pair = segment_steps(steps) <= kStagedSteps;
  if (norm_width > 0 && !one_pair) return std::nullopt;
  const auto room = static_cast<size_t>(device.shared_bytes_per_block - kGemvBarrierBytes);
  int warps = std::min(num_segments(steps), kMostGemvWarps);
  const auto shared_with = [&](int staged_pairs) {
    return gemv_shared_bytes(warps, staged_pairs, steps, num_terms, num_tokens, norm_width);
  };
  while (norm_width == 0 && shared_with(1) > room && warps > 1) warps /= 2;
  if (shared_with(1) > room) return std::nullopt;
  // Room for the next pair, unless it keeps a second block away.
  const auto fitting = [&](int staged_pairs) {
    return std::min(
        static_cast<int>(static_cast<size_t>(device.shared_bytes_per_multiprocessor) /
                         (shared_with(staged_pairs) + kGemvBarrierBytes + kReservedSharedBytes)),
        kMostBlocksPerMultiprocessor);
  };
  const bool two = !one_pair && shared_with(2) <= room &&
                   (fitting(2) == fitting(1) || num_panels <= device.multiprocessors);
  const int staged_pairs = two ? 2 : 1;
  // As few blocks as take the fewest turns, so that all of them have as much to do.
  const int turns =
      divide_up(num_panels, std::max(fitting(staged_pairs), 1) * device.multiprocessors);
  return GemvPlan{.warps = warps,
                  .blocks = divide_up(num_panels, turns),
                  .turns = gemv_turns(num_segments(steps), num_tokens),
                  .staged_pairs = staged_pairs,
                  .shared_bytes = shared_with(staged_pairs)};
}

std::optional<QuantizedGemvPlan> plan_gemv_quantized(const DeviceLimits& device, int segment_bytes,
                                                     int table_bytes, int num_panels, int steps,
                                                     int num_terms, int num_tokens,
                                                     int norm_width) {
  TRTMC_CHECK(num_tokens >= 1 && num_tokens <= most_quantized_gemv_tokens(num_terms),
              "too many tokens for gemv");
  const int beside = kGemvBarrierBytes + table_bytes;
  const auto room = static_cast<size_t>(device.shared_bytes_per_block - beside);
  const auto tokens = static_cast<size_t>(num_tokens);
  const size_t terms =
      size_t{kQuantizedSegment} * static_cast<size_t>(num_terms) * tokens * kStepWords * 4;
  const int segments = divide_up(steps, kQuantizedSegment);
  const size_t panel_sums = static_cast<size_t>(segments) * tokens * kPanelRows * sizeof(float);
  const int turns = gemv_turns(segments, num_tokens);
  const size_t sums = static_cast<size_t>(turns) * panel_sums +
                      static_cast<size_t>(num_norm_parts(norm_width)) * tokens * sizeof(float);
  int warps = segments <= kMostGemvWarps ? segments : std::min(segments, kMostQuantizedWarps);
  bool keeps = segments <= kMostGemvWarps;
  const auto slot = [&] { return static_cast<size_t>(segment_bytes) + (keeps ? 0 : terms); };
  const auto shared_with = [&](int slots) {
    const auto of_warp = static_cast<size_t>(slots) * slot() + (keeps ? terms : 0);
    return static_cast<size_t>(warps) * of_warp + sums;
  };
  constexpr int kFewestSlots = 2;
  if (norm_width > 0 && !(keeps && shared_with(kFewestSlots) <= room)) return std::nullopt;
  if (shared_with(kFewestSlots) > room) keeps = false;
  while (shared_with(kFewestSlots) > room && warps > 1) warps /= 2;
  if (shared_with(kFewestSlots) > room) return std::nullopt;
  // As many on their way as leave room for blocks of the next kernel beside those of this one.
  const size_t third = static_cast<size_t>(device.shared_bytes_per_multiprocessor) / 3;
  const size_t other = static_cast<size_t>(beside) + kReservedSharedBytes;
  int slots = kFewestSlots;
  while (slots < kMostRingSlots && shared_with(2 * slots) + other <= third) slots *= 2;
  const int fitting =
      std::clamp(static_cast<int>(static_cast<size_t>(device.shared_bytes_per_multiprocessor) /
                                  (shared_with(slots) + other)),
                 1, kMostBlocksPerMultiprocessor);
  const int rounds = divide_up(num_panels, fitting * device.multiprocessors);
  return QuantizedGemvPlan{.warps = warps,
                           .blocks = divide_up(num_panels, rounds),
                           .segments = segments,
                           .turns = turns,
                           .slots = slots,
                           .keeps_terms = keeps,
                           .shared_bytes = shared_with(slots)};
}

int gemm_stages(int num_terms) { return num_terms == 1 ? 5 : 4; }

GemmPlan plan_gemm(int num_panels, int step_bytes, int num_terms, int num_tokens) {
  const size_t stage = size_t{kGemmSteps} *
                       (static_cast<size_t>(kGemmPanels * step_bytes) +
                        static_cast<size_t>(gemm_tokens(num_terms) * num_terms) * kStepWords * 4);
  return {.row_tiles = divide_up(num_panels, kGemmPanels),
          .token_tiles = divide_up(num_tokens, gemm_tokens(num_terms)),
          .shared_bytes = stage * static_cast<size_t>(gemm_stages(num_terms))};
}

WgmmaPlan plan_wgmma(const DeviceLimits& device, int num_panels, int steps, int num_terms,
                     int num_tokens) {
  const int tokens = std::max(term_block(num_terms, num_tokens), kSmallestWgmmaTokens);
  const int token_tiles = divide_up(num_tokens, tokens);
  const int row_groups = num_panels / kGroupPanels;
  const int segments = num_segments(steps);
  const int multiprocessors = device.multiprocessors;
  const auto plan = [&](int groups, bool splits, int blocks_of_multiprocessor) {
    const int row_tiles = divide_up(row_groups, groups);
    const int tiles = row_tiles * token_tiles;
    return WgmmaPlan{
        .groups = groups,
        .tokens = tokens,
        .row_tiles = row_tiles,
        .token_tiles = token_tiles,
        .splits = splits,
        .clusters = splits ? tiles : std::min(tiles, blocks_of_multiprocessor * multiprocessors)};
  };
  const bool large = tokens * num_terms >= 128;  // Two groups have a multiprocessor for themselves.
  const int tiles = divide_up(row_groups, large ? 2 : 1) * token_tiles;
  // A block a tile is best where there are enough tiles; where there are few, clusters share them.
  // The shorter the sums, the sooner joining them costs more than it saves.
  const bool is_long = segment_steps(steps) > kShortestSegment;
  const int few = is_long ? 3 : large ? 5 : tokens > kSmallestWgmmaTokens ? 2 : 3;
  if (segments > 1 && tiles * few < multiprocessors) {
    const bool two =
        large || (tokens > kSmallestWgmmaTokens && row_groups * segments > 2 * multiprocessors);
    return plan(two ? 2 : 1, true, 1);
  }
  if (!large) return plan(1, false, 3);
  if (num_terms == 1 && tiles * 2 <= multiprocessors) return plan(1, false, 1);
  return plan(2, false, 1);
}

WgmmaPlan plan_wgmma_quantized(const DeviceLimits& device, int num_panels, int num_terms,
                               int num_tokens) {
  const int tokens = std::max(term_block(num_terms, num_tokens), kSmallestWgmmaTokens);
  const int token_tiles = divide_up(num_tokens, tokens);
  const bool large = tokens * num_terms >= 128;
  const int groups = large ? 2 : 1;
  const int row_tiles = divide_up(num_panels / kGroupPanels, groups);
  const int at_once = (large ? 1 : 2) * device.multiprocessors;
  return {.groups = groups,
          .tokens = tokens,
          .row_tiles = row_tiles,
          .token_tiles = token_tiles,
          .splits = false,
          .clusters = std::min(row_tiles * token_tiles, at_once)};
}

int chunk_bucket(int last_position) {
  int chunks = 1;
  while (chunks * kChunkPositions <= last_position) chunks *= 2;
  return chunks;
}

}  // namespace trtmc::cuda
