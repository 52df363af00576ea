// How a weight matrix lies in a bundle: the one layout that every CPU instruction set multiplies
// with in place. docs/bundle_format.md is normative; this is its code.
//
// W [rows, cols] is cut into panels of 16 rows, the last one filled up with zero rows. Within a
// panel the columns come in groups of k_group (2 for bf16, 1 for f16 and f32; the last group filled
// up with zeros); a group holds its 16 rows one after the other, each with its k_group values side
// by side:
//
//   offset of W[r, k] in elements = (r / 16) * 16 * padded_cols + (k / g) * 16 * g + (r % 16) * g +
//   k % g
//
// So a 64-byte load gives 16 rows at one (f32) or two (bf16) columns, a product adds along k in
// order and never across lanes, and 256-bit and 128-bit units take the same bytes in halves and
// quarters. Pairs of bf16 are what the dot-product instructions take, and widening one is a shift
// or a mask. The groups of a quantised matrix are those of tensor/block_formats.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace trtmc {

// The numbers are part of the bundle format.
enum class TensorLayout : uint32_t {
  kPlain = 0,     // Row-major.
  kPanels16 = 1,  // As above.
};

struct PackedLayout {
  static constexpr int64_t kPanelRows = 16;

  DType dtype;
  int64_t rows;
  int64_t cols;

  int64_t k_group() const;     // Columns of a group.
  size_t group_bytes() const;  // Of a panel's 16 rows.
  int64_t num_groups() const { return (cols + k_group() - 1) / k_group(); }
  int64_t padded_cols() const { return num_groups() * k_group(); }
  int64_t num_panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  size_t panel_bytes() const { return static_cast<size_t>(num_groups()) * group_bytes(); }
  size_t total_bytes() const { return static_cast<size_t>(num_panels()) * panel_bytes(); }
  // The offset of W[row, col] in elements, of a type that isn't quantised.
  int64_t index(int64_t row, int64_t col) const;
};

// Packs whole panels of a type that isn't quantised (tensor/quantize.h does those). `rows` holds
// the panel's rows in order, each of layout.cols values as float; fewer than 16 at the end of the
// matrix. `out` is one panel.
void pack_panel(const PackedLayout& layout, std::span<const std::span<const float>> rows,
                std::span<std::byte> out);

// The same from rows that already are of layout.dtype, bit for bit: layout.cols elements each, not
// necessarily aligned.
void pack_panel_bytes(const PackedLayout& layout, std::span<const std::span<const std::byte>> rows,
                      std::span<std::byte> out);

// Row `row` as float, of any type. out: [cols].
void unpack_row(const PackedLayout& layout, std::span<const std::byte> packed, int64_t row,
                std::span<float> out);

// A row of a quantised weight in parts, each as many numbers as there are columns or blocks of 32
// columns, or none: value = scale * (number - zero), where the number is the code (q8, -128 to 127;
// q6, -32 to 31) or kQ4Grid[code] (q4, codes 0 to 15).
struct QuantizedRow {
  std::span<float> codes, scales, zeros;
};
void unpack_quantized_row(const PackedLayout& layout, std::span<const std::byte> packed,
                          int64_t row, const QuantizedRow& out);

// A weight of a bundle as it lies there: a matrix in panels, or anything row-major.
struct WeightView {
  DType dtype;
  TensorLayout layout;
  Shape shape;
  std::span<const std::byte> bytes;

  PackedLayout packed() const { return {dtype, shape[0], shape[1]}; }  // Of its panels.
};

// Row `row` of a weight as float; a vector is row 0. out: [cols].
void read_row(const WeightView& weight, int64_t row, std::span<float> out);

// The panels of a matrix that lies row-major.
std::vector<std::byte> pack_plain(const WeightView& weight);

}  // namespace trtmc
