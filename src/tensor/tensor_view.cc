#include "tensor/tensor_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "base/check.h"

namespace trtmc {
namespace {

// out[i] = convert(element first + i of `bytes`). The bytes need no alignment.
template <typename Element, typename Convert>
void read_as(std::span<const std::byte> bytes, size_t first, std::span<float> out,
             Convert convert) {
  const std::byte* from = bytes.data() + first * sizeof(Element);
  for (size_t i = 0; i < out.size(); ++i) {
    Element element;
    std::memcpy(&element, from + i * sizeof(Element), sizeof(Element));
    out[i] = convert(element);
  }
}

}  // namespace

int64_t num_elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

void read_floats(const TensorView& tensor, int64_t first, std::span<float> out) {
  const size_t count = tensor.bytes.size() / element_bytes(tensor.dtype);
  const auto start = static_cast<size_t>(first);
  TRTMC_CHECK(first >= 0 && start <= count && out.size() <= count - start,
              "elements outside the tensor");
  switch (tensor.dtype) {
    case DType::kF32:
      return read_as<float>(tensor.bytes, start, out, [](float value) { return value; });
    case DType::kF16:
      return read_as<uint16_t>(tensor.bytes, start, out, f16_to_float);
    case DType::kBF16:
      return read_as<uint16_t>(tensor.bytes, start, out, bf16_to_float);
    default:
      break;
  }
  TRTMC_CHECK(false, "quantised weights lie in panels");
}

}  // namespace trtmc
