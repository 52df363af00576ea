// Grids, tiles and shared memory of the kernels, as plain functions of sizes: what is tested
// without a GPU.
#pragma once

#include <cstddef>
#include <optional>

namespace trtmc::cuda {

// What plans depend on of a device.
struct DeviceLimits {
  int multiprocessors;
  int shared_bytes_per_block;  // The most that a block may opt in to.
  int shared_bytes_per_multiprocessor;
  bool has_wgmma = false;
};

// Steps of up to so many tokens go through gemv, the rest through gemm.
inline constexpr int kMostGemvTokens = 16;

inline constexpr int kMostGemvWarps = 8;
inline constexpr int kMostGemvTurns = 8;
inline constexpr int kGemvBarrierBytes = 1024;  // At most, of a block beside `shared_bytes`.

struct GemvPlan {
  int warps;         // Of a block; each takes segments of k in turn.
  int blocks;        // Each takes panels in turn.
  int turns;         // Panels whose sums there is room for: 2 to kMostGemvTurns.
  int staged_pairs;  // Pairs of pieces of activations that a warp has room for: 1 or 2.
  size_t shared_bytes;
};
// `norm_width`: above 0, it takes the norm of its tokens, which are so wide, itself. Nothing if the
// device's shared memory is too small for so many tokens: gemm needs less. Or if it can't take
// norms of such a width.
std::optional<GemvPlan> plan_gemv(const DeviceLimits& device, int num_panels, int steps,
                                  int num_terms, int num_tokens, int norm_width);

// gemv of quantised weights.
inline constexpr int kMostRingSlots = 4;
// Of one launch: three terms of more would leave no room beside them for weights on their way.
inline constexpr int most_quantized_gemv_tokens(int num_terms) {
  return num_terms == 1 ? kMostGemvTokens : kMostGemvTokens / 2;
}
inline constexpr int kMostQuantizedWarps = 16;  // Where a sum has more segments than 8.
inline constexpr int kQ4TableBytes = 32768;  // Of every block that decodes q4, beside the others.

struct QuantizedGemvPlan {
  int warps;         // Of a block, beside one that finishes; each takes segments of k in turn.
  int blocks;        // Each takes panels in turn.
  int segments;      // Of a sum.
  int turns;         // Panels whose sums there is room for: 2 to kMostGemvTurns.
  int slots;         // Segments that a warp has on their way: 2 or 4.
  bool keeps_terms;  // A warp stages its segment's activations once.
  size_t shared_bytes;
};
// `segment_bytes`: of a panel's weights. `table_bytes`: that a block has beside `shared_bytes`. The
// rest as of plan_gemv().
std::optional<QuantizedGemvPlan> plan_gemv_quantized(const DeviceLimits& device, int segment_bytes,
                                                     int table_bytes, int num_panels, int steps,
                                                     int num_terms, int num_tokens, int norm_width);

struct GemmPlan {
  int row_tiles;    // Of kGemmPanels panels.
  int token_tiles;  // Of gemm_tokens().
  size_t shared_bytes;
};
inline constexpr int kGemmPanels = 8;
inline constexpr int gemm_tokens(int num_terms) { return num_terms == 1 ? 128 : 64; }
inline constexpr int kGemmSteps = 2;  // Of a stage.
inline constexpr int kGemmWarps = 16;
int gemm_stages(int num_terms);
// `step_bytes`: of a panel's weights in a step.
GemmPlan plan_gemm(int num_panels, int step_bytes, int num_terms, int num_tokens);

// gemm by wgmma.
inline constexpr int kSmallestWgmmaTokens = 32;  // Of a tile.
struct WgmmaPlan {
  int groups;       // Warp groups of a block: 64 rows each.
  int tokens;       // Of a tile.
  int row_tiles;    // Of `groups` * 64 rows.
  int token_tiles;  // Of `tokens`.
  bool splits;      // A cluster makes a tile, each of its blocks a segment of the sum.
  int clusters;     // Blocks or clusters; each takes tiles in turn.
};
// Where the terms' blocks are term_block() tokens. For compute capability 9.0.
WgmmaPlan plan_wgmma(const DeviceLimits& device, int num_panels, int steps, int num_terms,
                     int num_tokens);
// The same of quantised weights. A block makes a whole sum: their kernels have fewer shapes.
WgmmaPlan plan_wgmma_quantized(const DeviceLimits& device, int num_panels, int num_terms,
                               int num_tokens);

// Attention sees keys and values in chunks of so many positions, cut at multiples of it, whatever
// the step: their partial results are joined in rising order.
inline constexpr int kChunkPositions = 64;
// Positions of a block of KV memory.
inline constexpr int kKvBlockSize = 32;

// How many chunks a captured graph has room for: a power of two, so that a growing sequence needs a
// new graph only when it has doubled.
int chunk_bucket(int last_position);

// Rows of queries (a token's heads of one KV head lie side by side) that a block takes.
inline constexpr int kFewQueryRows = 4;
inline constexpr int kManyQueryRows = 16;
inline constexpr int kManyBf16QueryRows = 64;    // On the tensor cores.
inline constexpr int kManyWgmmaQueryRows = 128;  // By two warp groups.

}  // namespace trtmc::cuda
