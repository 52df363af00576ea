#include "checkpoint/checkpoint.h"

#include "base/check.h"

namespace trtmc {

size_t CheckpointTensor::row_bytes() const {
  size_t width = element_bytes(dtype);
  for (size_t i = 1; i < shape.size(); ++i) width *= static_cast<size_t>(shape[i]);
  return width;
}

std::span<const std::byte> CheckpointTensor::rows(int64_t first, int64_t last,
                                                  std::vector<std::byte>& buffer) const {
  TRTMC_CHECK(!shape.empty() && 0 <= first && first <= last && last <= shape[0],
              "rows of the tensor are asked for");
  const size_t width = row_bytes();
  const auto count = static_cast<size_t>(last - first);
  if (!make_row) return bytes.subspan(static_cast<size_t>(first) * width, count * width);
  buffer.resize(count * width);
  for (size_t i = 0; i < count; ++i) {
    make_row(first + static_cast<int64_t>(i), std::span(buffer).subspan(i * width, width));
  }
  return buffer;
}

void Checkpoint::release(const CheckpointTensor& tensor, int64_t first, int64_t last) const {
  // As a share of the file's bytes: close enough for advice where rows are made from others.
  const auto rows = static_cast<size_t>(tensor.shape.at(0));
  const size_t per_row = tensor.bytes.size() / rows;
  release_bytes(tensor.bytes.subspan(static_cast<size_t>(first) * per_row,
                                     static_cast<size_t>(last - first) * per_row));
}

}  // namespace trtmc
