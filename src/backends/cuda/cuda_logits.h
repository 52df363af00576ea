// Logits that stay on the device. The most likely token of each row is known already; anything else
// brings a row over.
#pragma once

#include <span>

#include "backends/backend.h"
#include "backends/cuda/kernels/sample.h"

namespace trtmc::cuda {

class CudaLogits final : public Logits {
 public:
  CudaLogits() = default;
  // values: [num_rows, stride] on the device. most_likely: [num_rows] on the host, or empty.
  CudaLogits(const float* values, int64_t stride, int num_rows, int vocab_size,
             std::span<const MostLikely> most_likely);

  int num_rows() const override { return num_rows_; }
  int vocab_size() const override { return vocab_size_; }
  void copy_row(int row, std::span<float> out) const override;
  void sample(std::span<const SampleRow> rows, std::span<Sampled> out) const override;

 private:
  const float* values_ = nullptr;
  int64_t stride_ = 0;
  int num_rows_ = 0;
  int vocab_size_ = 0;
  std::span<const MostLikely> most_likely_;
};

}  // namespace trtmc::cuda
