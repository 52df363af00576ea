// What a run of an engine reads besides keys and values, where it reads it: at the same addresses
// each time.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <span>
#include <vector>

#include "backends/cuda/device_buffer.h"
#include "backends/tensorrt/engine_shape.h"
#include "base/token.h"

namespace trtmc::tensorrt {

// The tokens of one sequence in a step.
struct Run {
  int slot;
  std::span<const TokenId> tokens;
  int num_past;               // Tokens of the sequence before these: the first one's position.
  std::span<const int> rows;  // Of the run's tokens, whose logits are wanted; at least one.
  int num_visible;            // visible_tokens()

  int num_tokens() const { return static_cast<int>(tokens.size()); }
};

class RunInputs {
 public:
  // `windows` are the layers' sliding windows, 0 for none, each once.
  RunInputs(std::span<const int> windows, int most_tokens, int most_visible);

  // Copies the run's inputs to the device. What is given may go as soon as this returns.
  void load(const Run& run, cudaStream_t stream);

  const void* ids() const { return ids_.data(); }
  const void* positions() const { return positions_.data(); }
  const void* write_index() const { return write_index_.data(); }
  const void* rows() const { return rows_.data(); }
  const void* mask(int window) const { return masks_.at(window).data(); }
  uint64_t bytes() const;

 private:
  cuda::DeviceBuffer<int32_t> ids_;                   // [most_tokens]
  cuda::DeviceBuffer<int32_t> positions_;             // [most_tokens]
  cuda::DeviceBuffer<int32_t> write_index_;           // [1]
  cuda::DeviceBuffer<int32_t> rows_;                  // [most_tokens]
  std::map<int, cuda::DeviceBuffer<uint8_t>> masks_;  // [most_tokens, most_visible], by window.
  std::vector<int32_t> numbers_;
  std::vector<uint8_t> mask_;
};

}  // namespace trtmc::tensorrt
