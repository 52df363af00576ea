// The block formats of quantised weights: what the bytes of a panel mean, for the host and for a
// device. Plain structs and constants only; docs/bundle_format.md is normative.
//
// A quantised matrix lies in the panels of tensor/packed_layout.h: 16 rows, their columns in groups
// of 64. A group is two blocks of 32 columns, and each row has a scale of its own in each block.
// Codes come in quads, four columns of one row side by side, which is what the byte dot products of
// every CPU add up at once; the 16 rows of a quad of columns are one line of 64 bytes. Scales come
// first, one line for both blocks. So whatever is read begins at a line.
//
//   q8  value = scale * (code - 128), codes of 8 bits: 8.5 bits a weight
//   q6  value = scale * (code - 32 + shift), codes of 6 bits: 6.5 bits a weight
//   q4  value = scale * (kQ4Grid[code] + shift), codes of 4 bits: 4.5 bits a weight
//
// A scale of q6 and q4 gives its lowest bits to the shift of its block and row, which moves the
// codes for values that don't lie around zero; the bits left are finer than the codes are.
#pragma once

#include <cstdint>

namespace trtmc {

constexpr int kBlockRows = 16;     // Of a panel.
constexpr int kBlockColumns = 32;  // That share a scale.
constexpr int kGroupColumns = 64;  // Two blocks.
constexpr int kQuadColumns = 4;
constexpr int kQuadsPerBlock = kBlockColumns / kQuadColumns;

struct Q8Group {
  uint16_t scales[2][kBlockRows];                               // f16, by block.
  uint8_t codes[2 * kQuadsPerBlock][kBlockRows][kQuadColumns];  // Block 0's quads, then block 1's.
};
static_assert(sizeof(Q8Group) == 1088);  // 17 lines of 64 bytes.

// The code that stands for 0: with it dot products of unsigned and signed bytes see weights as they
// lie, and what is too much is 128 times the sum of the activations, the same for every row.
constexpr int kQ8Zero = 128;

struct Q4Group {
  uint16_t scales[2][kBlockRows];  // As below, by block.
  // Quad i of block 0 in the low halves, quad i of block 1 in the high ones.
  uint8_t codes[kQuadsPerBlock][kBlockRows][kQuadColumns];
};
static_assert(sizeof(Q4Group) == 576);  // 9 lines.

// Of four quads of a block, three lie in the low six bits of three lines, and the fourth in the two
// bits above those, its highest bits in the first line: so what is read once gives all four, and no
// bits need more than a mask but the last.
constexpr int kQ6Quads = 4;
constexpr int kQ6Lines = 3;
constexpr int kQ6CodeBits = 6;

struct Q6Group {
  uint16_t scales[2][kBlockRows];  // As below, by block.
  // By block and four of its quads.
  uint8_t codes[2][kQuadsPerBlock / kQ6Quads][kQ6Lines][kBlockRows][kQuadColumns];
};
static_assert(sizeof(Q6Group) == 832);  // 13 lines.

// The code that stands for 0 where nothing is shifted.
constexpr int kQ6Zero = 32;
constexpr int kQ6MostCode = 63;

// A grid that is finer around zero, where most weights of a block are.
constexpr int8_t kQ4Grid[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};

constexpr int kShiftBits = 4;
constexpr uint16_t kShiftMask = (1 << kShiftBits) - 1;
constexpr int kShiftStep = 2;

// Of the 16 bits of a q4 or q6 scale: the f16 that they are without the lowest, and the shift in
// units of the codes' points, -16 to 14 in steps of 2.
constexpr uint16_t shifted_scale_bits(uint16_t bits) {
  return bits & static_cast<uint16_t>(~kShiftMask);
}
constexpr int scale_shift(uint16_t bits) {
  return ((bits & kShiftMask) - (1 << (kShiftBits - 1))) * kShiftStep;
}

// What is written for columns and rows that the matrix doesn't have, and for blocks of zeros: a
// scale of 0 with the shift 0, and this code, whose point of the grid is positive; of q6 kQ6Zero.
constexpr int kQ4NoCode = 8;

// No quantised weight is larger: f16's largest value.
constexpr float kMaxQuantizedMagnitude = 65504;

}  // namespace trtmc
