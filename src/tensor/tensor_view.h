// A tensor somebody else owns: type, shape, bytes in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace trtmc {

using Shape = std::vector<int64_t>;

int64_t num_elements(
    const Shape& shape);  // 1 for the empty shape. The caller has checked for overflow.
std::string to_string(const Shape& shape);  // "[3072, 2048]"

struct TensorView {
  DType dtype;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Elements [first, first + out.size()) of the tensor as float.
void read_floats(const TensorView& tensor, int64_t first, std::span<float> out);

}  // namespace trtmc
