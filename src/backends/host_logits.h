// Logits that lie in host memory, one row after the other.
#pragma once

#include <span>

#include "backends/backend.h"

namespace trtmc {

class HostLogits final : public Logits {
 public:
  HostLogits() = default;
  // values: [num_rows, row_stride], borrowed; the first vocab_size of each row are the logits.
  HostLogits(std::span<const float> values, int num_rows, int vocab_size, int64_t row_stride);

  int num_rows() const override { return num_rows_; }
  int vocab_size() const override { return vocab_size_; }
  void copy_row(int row, std::span<float> out) const override;
  // Where they lie, without copies.
  void sample(std::span<const SampleRow> rows, std::span<Sampled> out) const override;

 private:
  std::span<const float> row_values(int row) const;  // [vocab_size]

  std::span<const float> values_;
  int num_rows_ = 0;
  int vocab_size_ = 0;
  size_t row_stride_ = 0;
};

}  // namespace trtmc
