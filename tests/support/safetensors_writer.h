// Safetensors files for tests.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "tensor/tensor_view.h"

namespace trtmc {

// A tensor to write, row-major.
struct OwnedTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

// `values` rounded to `dtype`.
OwnedTensor make_tensor(std::string name, DType dtype, Shape shape,
                        const std::vector<float>& values);

// A safetensors file with the tensors in this order.
void write_safetensors(const std::filesystem::path& path, const std::vector<OwnedTensor>& tensors);

}  // namespace trtmc
