// Logits that stay on the device. The most likely token of each row is known already; what else is
// asked of a row is sampled there too, and only a row of which the device can't say it comes over.
#pragma once

#include <span>

#include "backends/backend.h"
#include "backends/cuda/cuda_sampler.h"
#include "backends/cuda/kernels/sample.h"

namespace trtmc::cuda {

class CudaLogits final : public Logits {
 public:
  CudaLogits() = default;
  // values: [num_rows, stride] on the device. most_likely: [num_rows] on the host, or empty. Both
  // and the sampler are borrowed.
  CudaLogits(const float* values, int64_t stride, int num_rows, int vocab_size,
             std::span<const MostLikely> most_likely, CudaSampler* sampler);

  int num_rows() const override { return num_rows_; }
  int vocab_size() const override { return vocab_size_; }
  void copy_row(int row, std::span<float> out) const override;
  void sample(std::span<const SampleRow> rows, std::span<Sampled> out) const override;
  void score(std::span<const ScoreRow> rows, std::span<TokenScore> out) const override;

 private:
  bool take_most_likely(const SampleRow& of, Sampled& out) const;

  const float* values_ = nullptr;
  int64_t stride_ = 0;
  int num_rows_ = 0;
  int vocab_size_ = 0;
  std::span<const MostLikely> most_likely_;
  CudaSampler* sampler_ = nullptr;
};

}  // namespace trtmc::cuda
