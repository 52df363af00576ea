// What the kernels that multiply by a matrix have in common: gemv for a few tokens, gemm for many.
// All of a format give the same bits.
//
// A matrix is cut into panels of 16 rows, and these into steps of 16 columns. In bf16 a step is 512
// bytes: lane by lane the 16 bytes that a lane feeds the tensor core (pack_fragments in weights.h
// makes it). Four steps of four panels lie together, panel by panel: what is copied at once where
// 64 rows are multiplied at once.
//
// A quantised matrix (tensor/block_formats.h) is cut into blocks of two steps, whose 32 columns
// share a scale in each row: lane by lane the codes of both, 16 bytes (q8) or 8 (q4), then the 16
// rows' scales. Four blocks are a piece; the same piece of four panels lies together, panel by
// panel. quantized.cuh has where a lane's codes lie, and how they are multiplied.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/terms.h"

namespace trtmc::cuda {

enum class WeightFormat { kBf16, kQ8, kQ4 };

enum class Epilogue {
  kStore,   // out = W x
  kAdd,     // out += W x
  kSwiglu,  // Rows alternate gate and up: the terms of silu(gate) * up.
};

inline constexpr int kStepLanes = 32;   // Of a panel's step, 16 bytes each.
inline constexpr int kGroupPanels = 4;  // Matrices are whole groups.
inline constexpr int kStageSteps = 4;

// Where a panel's step lies, in 16 bytes.
inline constexpr int64_t weight_part(int panel, int step, int steps) {
  const int64_t stage = int64_t{panel / kGroupPanels} * (steps / kStageSteps) + step / kStageSteps;
  return (stage * (kGroupPanels * kStageSteps) + panel % kGroupPanels * kStageSteps +
          step % kStageSteps) *
         kStepLanes;
}

// Of quantised weights.
inline constexpr int kBlockSteps = 2;
inline constexpr int kPieceBlocks = kPieceSteps / kBlockSteps;
inline constexpr int kScaleBytes = 2 * kPanelRows;  // Of a block, f16.

// Of one lane in a block.
inline constexpr int lane_bytes(WeightFormat format) {
  return format == WeightFormat::kQ8 ? 16 : 8;
}
inline constexpr int block_bytes(WeightFormat format) {
  return kStepLanes * lane_bytes(format) + kScaleBytes;
}
// Of one panel in kPieceSteps steps.
inline constexpr int piece_bytes(WeightFormat format) {
  constexpr int kBf16StepBytes = 16 * kStepLanes;
  return format == WeightFormat::kBf16 ? kPieceSteps * kBf16StepBytes
                                       : kPieceBlocks * block_bytes(format);
}
// How long segments are: of quantised weights always so short, since their sums take more work, for
// which there have to be warps enough.
inline constexpr int kQuantizedSegment = 2 * kPieceSteps;
inline constexpr int segment_steps(WeightFormat format, int steps) {
  return format == WeightFormat::kBf16 ? segment_steps(steps) : kQuantizedSegment;
}

// Where a piece of a quantised matrix lies, in pieces.
inline constexpr int64_t quantized_piece(int panel, int piece, int steps) {
  return (int64_t{panel / kGroupPanels} * (steps / kPieceSteps) + piece) * kGroupPanels +
         panel % kGroupPanels;
}
// Where the first panel of a group begins, in bytes.
inline constexpr int64_t group_offset(WeightFormat format, int panel, int steps) {
  return int64_t{panel} * (steps / kPieceSteps) * piece_bytes(format);
}

struct ProductArgs {
  const void* weights;
  WeightFormat format;
  int num_panels;  // A multiple of kGroupPanels.
  int steps;       // Along k, in segments of so many, the last one shorter:
  int segment;
  int num_terms;  // 1 or 3
  int num_tokens;

  // Either terms, or rows of float that are normed (and split) on the way in. The latter in gemv
  // only.
  TermBuffer in;
  const float* x;       // [.., x_stride]
  const int32_t* rows;  // Which rows of x, null: the first num_tokens.
  const float* norm;    // [width] Null: `in` is what is multiplied.
  int64_t x_stride;
  int width;
  float eps;

  Epilogue epilogue;
  float* out;  // [num_tokens, out_stride], rows begin at multiples of 16 bytes
  int64_t out_stride;
  int num_rows;  // Of W. Rows behind them are not stored.
  // Where a matrix alternates with another row by row, 2; every such row is stored, from the one
  // given on, as if the other were not there. Else 1 and 0.
  int row_distance;
  int first_row;
  TermBuffer out_terms;
};

}  // namespace trtmc::cuda
