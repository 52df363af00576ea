#include "backends/cuda/kernels/launch_plan.h"

#include <algorithm>

#include "backends/cuda/kernels/terms.h"
#include "base/check.h"

namespace trtmc::cuda {
namespace {

// Of a block that shares its multiprocessor with another.
constexpr int kUsualWarps = 8;
// Blocks of gemv that registers leave room for on a multiprocessor.
constexpr int kMostBlocksPerMultiprocessor = 2;
constexpr size_t kReservedSharedBytes = 1024;  // Of every block, by the system.

int divide_up(int a, int b) { return (a + b - 1) / b; }

// What each warp stages of the activations, two buffers of partial sums, sums of squares and the
// weights of a norm.
size_t gemv_shared_bytes(int warps, int panels_per_tile, int steps, int num_terms, int num_tokens,
                         bool norms) {
  const size_t tokens = static_cast<size_t>(num_tokens);
  const size_t staged =
      size_t{kSegmentSteps} * static_cast<size_t>(num_terms) * tokens * kStepWords * 4;
  const size_t partial = static_cast<size_t>(num_segments(steps) * panels_per_tile) * tokens *
                         kPanelRows * sizeof(float);
  const size_t segments = static_cast<size_t>(num_segments(steps));
  const size_t norm = segments * (tokens + size_t{kSegmentSteps} * kStepColumns) * sizeof(float);
  return static_cast<size_t>(warps) * staged + 2 * partial + (norms ? norm : 0);
}

}  // namespace

std::optional<GemvPlan> plan_gemv(const DeviceLimits& device, int num_panels, int panels_per_tile,
                                  int steps, int num_terms, int num_tokens, bool norms) {
  TRTMC_CHECK(num_tokens >= 1 && num_tokens <= kMostGemvTokens, "too many tokens for gemv");
  TRTMC_CHECK(num_panels % panels_per_tile == 0, "a tile that is not whole");
  const int num_tiles = num_panels / panels_per_tile;
  const auto shared_with = [&](int warps) {
    return gemv_shared_bytes(warps, panels_per_tile, steps, num_terms, num_tokens, norms);
  };
  const auto room = static_cast<size_t>(device.shared_bytes_per_block);
  int warps = kUsualWarps;
  if (num_tiles <= device.multiprocessors && num_segments(steps) > kUsualWarps) {
    // A block has its multiprocessor for itself: as many warps as take the fewest turns.
    const int turns = divide_up(num_segments(steps), kMostGemvWarps);
    warps = divide_up(num_segments(steps), turns);
  }
  while (shared_with(warps) > room && warps > 1) warps /= 2;
  const size_t shared = shared_with(warps);
  if (shared > room) return std::nullopt;
  const int fitting =
      warps > kUsualWarps
          ? 1
          : std::clamp(
                static_cast<int>(static_cast<size_t>(device.shared_bytes_per_multiprocessor) /
                                 (shared + kReservedSharedBytes)),
                1, kMostBlocksPerMultiprocessor);
  // As few blocks as take the fewest turns, so that all of them have as much to do.
  const int turns = divide_up(num_tiles, fitting * device.multiprocessors);
  return GemvPlan{.warps = warps,
                  .blocks = divide_up(num_tiles, turns),
                  .panels_per_tile = panels_per_tile,
                  .num_tiles = num_tiles,
                  .shared_bytes = shared};
}

int gemm_stages(int num_terms) { return num_terms == 1 ? 5 : 4; }

GemmPlan plan_gemm(int num_panels, int num_terms, int num_tokens) {
  const size_t stage =
      size_t{kGemmSteps} * kStepWords * 4 *
      (size_t{kGemmPanels} * kPanelRows + static_cast<size_t>(gemm_tokens(num_terms) * num_terms));
  return {.row_tiles = divide_up(num_panels, kGemmPanels),
          .token_tiles = divide_up(num_tokens, gemm_tokens(num_terms)),
          .shared_bytes = stage * static_cast<size_t>(gemm_stages(num_terms))};
}

int chunk_bucket(int last_position) {
  int chunks = 1;
  while (chunks * kChunkPositions <= last_position) chunks *= 2;
  return chunks;
}

}  // namespace trtmc::cuda
