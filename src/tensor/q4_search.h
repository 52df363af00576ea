// The q4 encoding of a block: which scale, shift and codes lose least. Private to this folder.
//
// An error e of a weight x costs (x^2 + 4 v) e^2, v being the mean square of its block and row: of
// a large weight somewhat more than of a small one. Nobody knows here what the weights are
// multiplied with; docs/quantization.md has what other costs come to.
//
// A search starts with the largest weight on several points of the grid, both ways round, since the
// grid has a longer and a shorter end, and goes on from the best with other scales and shifts near
// it. Each is followed by least squares: for given codes the best scale and shift have a closed
// form, for given scale and shift the nearest codes are best.
// Everything is done for the rows of a panel side by side and column after column, so that the
// result is the same to the bit on every processor.
#pragma once

#include <cstdint>

#include "tensor/block_formats.h"

namespace trtmc {

struct Q4Block {
  float values[kBlockColumns][kBlockRows];  // Finite, at most kMaxQuantizedMagnitude.
  int columns;                              // That exist; the rest of `values` is zero.
};

struct Q4Encoding {
  uint32_t scales[kBlockRows];  // The bits of floats that are f16 without its kQ4ShiftBits lowest.
  int32_t shifts[kBlockRows];   // In units of the grid.
  int32_t codes[kBlockColumns][kBlockRows];
};

using Q4Search = void (*)(const Q4Block& block, Q4Encoding& encoding);

// For the best instruction set of this machine. All give the same bits.
Q4Search q4_search();

namespace generic {
void search_q4(const Q4Block& block, Q4Encoding& encoding);
}
#if defined(__x86_64__)
namespace avx2 {
void search_q4(const Q4Block& block, Q4Encoding& encoding);
}
namespace avx512 {
void search_q4(const Q4Block& block, Q4Encoding& encoding);
}
#endif

}  // namespace trtmc
