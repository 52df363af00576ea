// How activations enter a product on the tensor cores, which multiply bf16 by bf16.
//
// A float is the sum of three bf16 exactly: the nearest one, the nearest one of the rest, and what
// then remains. With three terms a product of bf16 weights is as exact as in float32; with one it
// takes what Transformers takes in bfloat16. Sums are in float32 either way.
//
// Terms lie as the tensor core takes them and as they are copied: blocks of tokens, in each of them
// step after step along k, in a step the first half of its columns and then the second, 16 bytes of
// a token behind those of the token before it. `block` tokens, `steps` steps, a word for each pair
// of neighbouring columns:
//
//   word of columns (16 s + 2 p, + 1) of token t, term i =
//       ((((t / block * steps + s) * terms + i) * 2 + p / 4) * block + t % block) * 4 + p % 4
//
// Columns behind the width are zero.
#pragma once

#include <cstdint>

namespace trtmc::cuda {

inline constexpr int kStepColumns = 16;  // Of one tensor-core step along k.
inline constexpr int kStepWords = 8;     // Of one token in it.
inline constexpr int kHalfWords = 4;     // Of one token in half of it: 16 bytes.
inline constexpr int kPanelRows = 16;    // Of a weight matrix in one step.

// A sum along k is made of at most kMostSegments segments, added to each other in rising order in
// float32; within a segment the tensor core adds step by step. How long they are depends on the
// matrix alone, and so this order is the same in every kernel: a token's bits do not depend on the
// tokens beside it. Blocks or warps can share a sum segment by segment.
//
// The tensor core cuts off what does not fit beside a sum instead of rounding it. One term is no
// better than that. With three, each has sums of its own: those of the first, which are the
// largest, are added up in float32 every kExactSteps steps, and at the end of the segment those of
// the other two, which are smaller by 2^8 and 2^16, are added to them.
inline constexpr int kMostSegments = 8;
inline constexpr int kShortestSegment = 16;  // Steps.
inline constexpr int kPieceSteps = 8;        // Segments are whole pieces of so many.
inline constexpr int kExactSteps = 2;

// Of whole pieces: behind the columns there are zeros, in weights and in terms.
inline constexpr int num_steps(int columns) {
  constexpr int kPieceColumns = kPieceSteps * kStepColumns;
  return (columns + kPieceColumns - 1) / kPieceColumns * kPieceSteps;
}
inline constexpr int segment_steps(int steps) {
  const int even = (steps + kMostSegments - 1) / kMostSegments;
  const int whole = (even + kPieceSteps - 1) / kPieceSteps * kPieceSteps;
  return whole > kShortestSegment ? whole : kShortestSegment;
}
inline constexpr int num_segments(int steps) {
  return (steps + segment_steps(steps) - 1) / segment_steps(steps);
}

// The sum of squares of a row is made of those of so many columns, added in rising order.
inline constexpr int kNormColumns = 256;
inline constexpr int num_norm_parts(int columns) {
  return (columns + kNormColumns - 1) / kNormColumns;
}

// A buffer of terms.
struct TermBuffer {
  uint32_t* words;
  int steps;
  int block;       // A power of two:
  int block_bits;  // its logarithm.
};

// Tokens of a block in a step of so many: what a kernel takes at once.
inline constexpr int kSmallestBlock = 16;
inline constexpr int kLargestBlock = 128;
inline constexpr int term_block(int num_terms, int num_tokens) {
  const int most = num_terms == 1 ? kLargestBlock : kLargestBlock / 2;
  int block = kSmallestBlock;
  while (block < most && block < num_tokens) block *= 2;
  return block;
}

}  // namespace trtmc::cuda
