// Rows to sample on a device, as jobs in memory that goes over in one copy, and their answers.
// Needs no CUDA: what is copied and run in between is its owner's.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/cuda/kernels/sample_job.h"

namespace trtmc::cuda {

// What a batch lies in.
struct SampleMemory {
  std::span<std::byte> host;  // kSampleMemoryBytes, aligned to 16.
  std::byte* device;          // Where the device has a copy of it.
  float* scores;              // [kMostScoredRows, stride] on the device.
  int64_t stride;
};

inline constexpr int kMostSampleJobs = 64;
inline constexpr int kMostScoredRows = 32;
inline constexpr size_t kSampleMemoryBytes = size_t{2} << 20;

class SampleBatch {
 public:
  SampleBatch(int vocab_size, const SampleMemory& memory);

  enum class Added { kTaken, kFull, kUnsuited };  // Full: it may fit into an empty batch.
  // logits: on the device, [vocab_size].
  Added add(const SampleRow& row, const float* logits);
  Added add(const ScoreRow& row, const float* logits);

  int num_rows() const { return static_cast<int>(rows_.size()); }
  int num_jobs() const { return num_jobs_; }
  // Both from the beginning of the memory: what goes over, and what comes back.
  size_t bytes() const { return used_; }
  size_t answer_bytes() const { return sizeof(SampleState) * static_cast<size_t>(num_jobs_); }
  bool selects_top_k() const { return selects_top_k_; }
  bool selects_top_p() const { return selects_top_p_; }
  const SampleJob* device_jobs() const;
  SampleState* device_states() const;

  // Of the row that was added as the `index`-th, from the states that came back. False: what there
  // is to say about it takes the whole row.
  bool read(int index, Sampled& out) const;
  bool read(int index, TokenScore& out) const;

 private:
  struct Row {
    int token_job, most_likely_job;  // -1: none.
    int num_top;
  };

  SampleJob& add_job(SampleKind kind, const float* logits);
  void add_most_likely(int num_top, TokenId target, const float* logits);
  void add_lists(const SampleRow& row, SampleJob& job);
  template <typename T>
  T* take(size_t count, const T*& on_device);
  SampleState& state(int job) const;
  bool read_top(const Row& row, double& logprob, float logit, std::vector<TokenLogprob>& top) const;

  int vocab_size_;
  SampleMemory memory_;
  size_t used_;
  int num_jobs_ = 0, num_scored_ = 0;
  bool selects_top_k_ = false, selects_top_p_ = false;
  std::vector<Row> rows_;
};

}  // namespace trtmc::cuda
