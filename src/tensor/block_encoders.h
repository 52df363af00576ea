// The encoding of a block of weights, once for every instruction set. Private to this folder. The
// scale of a q8 block follows from its largest magnitude; of a q4 or q6 block, scale, shift and
// codes are searched for that lose least.
//
// An error e of a weight x costs (x^2 + 4 v) e^2, v being the mean square of its block and row: of
// a large weight somewhat more than of a small one. Nobody knows here what the weights are
// multiplied with; docs/quantization.md has what other costs come to.
//
// A search starts with a few scales. For q4 they put the largest weight on several points of the
// grid, both ways round, since the grid has a longer and a shorter end; for q6 they spread its even
// steps over all of the block's weights, with the shift that this takes. It goes on from the best
// with other scales and shifts near it. Each is followed by least squares: for given codes the best
// scale and shift have a closed form, for given scale and shift the nearest codes are best.
// Everything is done for the rows of a panel side by side and column after column, so that the
// result is the same to the bit on every processor.
#pragma once

#include <cstdint>

#include "tensor/block_formats.h"

namespace trtmc {

struct WeightBlock {
  float values[kBlockColumns][kBlockRows];  // Finite, at most kMaxQuantizedMagnitude.
  int columns;                              // That exist; the rest of `values` is zero.
};

struct BlockEncoding {
  uint32_t scales[kBlockRows];  // The bits of floats that are f16 without its kShiftBits lowest.
  int32_t shifts[kBlockRows];   // In units of the codes' points.
  int32_t codes[kBlockColumns][kBlockRows];
};

using BlockSearch = void (*)(const WeightBlock& block, BlockEncoding& encoding);

// One instruction set's. All give the same bits.
struct BlockEncoders {
  const char* isa;
  // Values [first, first + kBlockColumns) of kBlockRows rows, side by side.
  void (*gather)(const float* const* rows, int64_t first, WeightBlock& block);
  // Whether no magnitude is above `most`, and none a NaN.
  bool (*are_within)(const float* values, int64_t count, float most);
  // The largest magnitude of each row. out: [kBlockRows].
  void (*largest)(const WeightBlock& block, float* out);
  // The nearest codes to value / scale, ties to even. scales: [kBlockRows], none 0. codes:
  // [kQuadsPerBlock][kBlockRows][kQuadColumns].
  void (*q8_codes)(const WeightBlock& block, const float* scales,
                   uint8_t (*codes)[kBlockRows][kQuadColumns]);
  BlockSearch q4;
  BlockSearch q6;
};

// Those that this machine can run, by number, the best first; null behind the last, "generic".
const BlockEncoders* runnable_encoders(int number);

namespace generic {
const BlockEncoders& block_encoders();
}
#if defined(__x86_64__)
namespace avx2 {
const BlockEncoders& block_encoders();
}
namespace avx512 {
const BlockEncoders& block_encoders();
}
#endif

}  // namespace trtmc
