// The element types of a GGUF file and the values that their blocks stand for
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; PyPI's `gguf`, quants.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace trtmc {

// One of the types that are read: so many elements lie together in so many bytes.
struct GgmlType {
  uint32_t number;        // In the file.
  std::string_view name;  // "Q4_K"
  int64_t block_elements;
  size_t block_bytes;
  std::optional<DType> plain;  // The same as one of our own types.
  // Writes the values of one block, bit-equal to those of `gguf.quants.dequantize`: float32
  // throughout. block: [block_bytes], out: [block_elements].
  void (*decode_block)(const std::byte* block, float* out);
};

// Nothing for a type that is not read.
const GgmlType* find_ggml_type(uint32_t number);
// "IQ4_XS", or "99" for a number that no version of the format had when this was written.
std::string ggml_type_name(uint32_t number);
// "F32, F16, …", the types that are read.
std::string readable_ggml_types();

// The values of whole blocks. out.size() is a multiple of the block's elements, `blocks` has the
// bytes for it.
void decode_blocks(const GgmlType& type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace trtmc
