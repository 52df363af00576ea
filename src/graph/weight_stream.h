// The weights of a bundle as graphs take them: matrices in one of the float types, row by row or
// column by column, in pieces, so that memory stays bounded whatever a matrix is.
#pragma once

#include <cstddef>
#include <span>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "bundle/bundle.h"
#include "graph/network_sink.h"

namespace trtmc {

enum class MatrixOrder {
  kByRows,     // W [out, in] row-major, as it is multiplied with in x W^T.
  kByColumns,  // The same transposed: [in, out] row-major.
};

// What a quantised weight W [out, in] is stored as, blocks being kBlockColumns of its columns:
// value = scale * (number - zero), the number being the code (q8, q6) or kQ4Grid[code] (q4).
enum class QuantizedPart {
  kCodes,   // [out, in]: q8 and q6 int8, q4 of 4 bits, two a byte, the first in the low half.
  kScales,  // [out, blocks], float32.
  kZeros,   // [out, blocks], int8. All 0 for q8.
};

class WeightStream {
 public:
  using TakePiece = FunctionRef<void(std::span<const std::byte>)>;

  WeightStream(const Bundle& bundle, ThreadPool& pool);

  // Hands the weight's values to `take`, rounded once to `type` (f32, f16 or bf16), piece after
  // piece in order; a piece is valid during the call. Quantised weights are decoded. What was read
  // of the bundle's file is given back to the system. Throws kUnsupported naming the weight if a
  // value is finite here and not in `type`.
  void read(const TensorKey& key, ElementType type, MatrixOrder order, TakePiece take) const;
  // The same for one part of a quantised weight.
  void read_part(const TensorKey& key, QuantizedPart part, MatrixOrder order, TakePiece take) const;

 private:
  const Bundle& bundle_;
  ThreadPool& pool_;
};

}  // namespace trtmc
