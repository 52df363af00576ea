// Panels of quantised weights from floats. The same floats give the same bytes on every machine.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/packed_layout.h"

namespace trtmc {

// Whether quantised types can hold these: finite and at most kMaxQuantizedMagnitude.
bool is_quantizable(std::span<const float> values);

// Packs a panel of a quantised type. `rows` holds the panel's rows in order, each of layout.cols
// values that are quantizable; fewer than 16 at the end of the matrix. `out` is one panel.
//
//   q8      a scale is the block's largest magnitude / 127, a code the nearest to value / scale
//   q6, q4  a scale, a shift and codes of small weighted squared error: tensor/block_encoders.h
//
// A block all of whose values are nearer to zero than a scale can say becomes zeros.
void quantize_panel(const PackedLayout& layout, std::span<const std::span<const float>> rows,
                    std::span<std::byte> out);

}  // namespace trtmc
