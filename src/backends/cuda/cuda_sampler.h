// Samples and scores rows of logits where they lie. Owns the memory that this takes, on both sides.
#pragma once

#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/cuda/device_buffer.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/sample_job.h"
#include "backends/cuda/sample_batch.h"

namespace trtmc::cuda {

class CudaSampler {
 public:
  CudaSampler(int vocab_size, const Launch& how);

  // logits: [rows, stride] on the device. Waits. Returns the indices of what it left: the rows of
  // which only the host can say something.
  std::vector<size_t> sample(const float* logits, int64_t stride, std::span<const SampleRow> rows,
                             std::span<Sampled> out);
  std::vector<size_t> score(const float* logits, int64_t stride, std::span<const ScoreRow> rows,
                            std::span<TokenScore> out);

  uint64_t bytes() const;

 private:
  template <typename Row, typename Answer>
  std::vector<size_t> run(const float* logits, int64_t stride, std::span<const Row> rows,
                          std::span<Answer> out);
  void run_batch(const SampleBatch& batch);

  int vocab_size_;
  Launch how_;
  int64_t stride_;
  PinnedBuffer<std::byte> host_;
  DeviceBuffer<std::byte> device_;
  DeviceBuffer<float> scores_;
  DeviceBuffer<uint64_t> amounts_;
  DeviceBuffer<RowShare> shares_;
  DeviceBuffer<int32_t> arrived_;
};

}  // namespace trtmc::cuda
