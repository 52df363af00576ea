#include "backends/tensorrt/run_inputs.h"

#include <numeric>

namespace trtmc::tensorrt {
namespace {

constexpr std::string_view kMemory = "memory for a step's inputs";

// From memory that the system may page out: the call returns when it has read all of it.
template <typename T>
void copy(std::span<const T> from, const cuda::DeviceBuffer<T>& to, cudaStream_t stream) {
  cuda::check_cuda(
      cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice, stream),
      "a step's inputs");
}

}  // namespace

RunInputs::RunInputs(std::span<const int> windows, int most_tokens, int most_visible)
    : ids_(static_cast<size_t>(most_tokens), kMemory),
      positions_(static_cast<size_t>(most_tokens), kMemory),
      write_index_(1, kMemory),
      rows_(static_cast<size_t>(most_tokens), kMemory) {
  const size_t elements = static_cast<size_t>(most_tokens) * static_cast<size_t>(most_visible);
  for (const int window : windows) {
    masks_.emplace(window, cuda::DeviceBuffer<uint8_t>(elements, kMemory));
  }
}

void RunInputs::load(const Run& run, cudaStream_t stream) {
  copy(std::span<const int32_t>(run.tokens), ids_, stream);
  numbers_.resize(run.tokens.size());
  std::iota(numbers_.begin(), numbers_.end(), run.num_past);
  copy(std::span<const int32_t>(numbers_), positions_, stream);
  copy(std::span<const int32_t>(&run.num_past, 1), write_index_, stream);
  copy(std::span<const int32_t>(run.rows), rows_, stream);
  mask_.resize(run.tokens.size() * static_cast<size_t>(run.num_visible));
  for (const auto& [window, buffer] : masks_) {
    fill_mask(run.num_tokens(), run.num_past, run.num_visible, window, mask_);
    copy(std::span<const uint8_t>(mask_), buffer, stream);
  }
}

uint64_t RunInputs::bytes() const {
  uint64_t bytes = ids_.bytes() + positions_.bytes() + write_index_.bytes() + rows_.bytes();
  for (const auto& [window, buffer] : masks_) bytes += buffer.bytes();
  return bytes;
}

}  // namespace trtmc::tensorrt
