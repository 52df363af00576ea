// How activations enter a product on the tensor cores, which multiply bf16 by bf16.
//
// A float is the sum of three bf16 exactly: the nearest one, the nearest one of the rest, and what
// then remains. With three terms a product of bf16 weights is as exact as in float32; with one it
// takes what Transformers takes in bfloat16. Sums are in float32 either way.
//
// Terms lie as the instruction takes them, pairs of neighbouring columns in a word, 16 columns (a
// step along k) of one token side by side:
//
//   word of columns (16 s + 2 p, + 1) of token t, term i =
//       ((s * terms + i) * capacity + t) * 8 + (p % 4) * 2 + p / 4
//
// `capacity` is how many tokens the buffer has room for; columns behind the width are zero.
#pragma once

#include <cstdint>

namespace trtmc::cuda {

inline constexpr int kStepColumns = 16;  // Of one tensor-core step along k.
inline constexpr int kStepWords = 8;     // Of one token in it.
inline constexpr int kPanelRows = 16;    // Of a weight matrix in one step.

// A sum along k is made of segments of so many steps, added to each other in rising order in
// float32; within a segment the tensor core adds step by step. This order is the same in every
// kernel, so that a token's bits do not depend on the tokens beside it.
//
// The tensor core cuts off what does not fit beside a sum instead of rounding it. One term is no
// better than that. With three, each has sums of its own: those of the first, which are the
// largest, are added up in float32 every kExactSteps steps, and at the end of the segment those of
// the other two, which are smaller by 2^8 and 2^16, are added to them.
inline constexpr int kSegmentSteps = 16;
inline constexpr int kExactSteps = 2;

inline constexpr int num_steps(int columns) { return (columns + kStepColumns - 1) / kStepColumns; }
inline constexpr int num_segments(int steps) { return (steps + kSegmentSteps - 1) / kSegmentSteps; }

// A buffer of terms.
struct TermBuffer {
  uint32_t* words;
  int capacity;  // Tokens.
};

}  // namespace trtmc::cuda
