#include "backends/cuda/cuda_sampler.h"

#include "backends/cuda/check_cuda.h"
#include "backends/cuda/kernels/sample_row.h"
#include "base/check.h"

namespace trtmc::cuda {
namespace {

constexpr std::string_view kWhat = "memory for sampling";

}  // namespace

CudaSampler::CudaSampler(int vocab_size, const Launch& how)
    : vocab_size_(vocab_size),
      how_(how),
      stride_((int64_t{vocab_size} + 3) / 4 * 4),
      host_(kSampleMemoryBytes, kWhat),
      device_(kSampleMemoryBytes, kWhat),
      scores_(static_cast<size_t>(kMostScoredRows * stride_), kWhat),
      amounts_(size_t{kMostSampleJobs} * kDigitValues, kWhat, true),
      shares_(size_t{kMostSampleJobs} * kRowParts, kWhat),
      arrived_(kMostSampleJobs, kWhat, true) {}

uint64_t CudaSampler::bytes() const {
  return device_.bytes() + scores_.bytes() + amounts_.bytes() + shares_.bytes() + arrived_.bytes();
}

void CudaSampler::run_batch(const SampleBatch& batch) {
  check_cuda(cudaMemcpyAsync(device_.data(), host_.data(), batch.bytes(), cudaMemcpyHostToDevice,
                             how_.stream),
             "sampling");
  for_each_pass(batch.selects_top_k(), batch.selects_top_p(), [&](SamplePass pass, int digit) {
    launch_sample_pass({.pass = pass,
                        .digit = digit,
                        .num_jobs = batch.num_jobs(),
                        .jobs = batch.device_jobs(),
                        .states = batch.device_states(),
                        .amounts = amounts_.data(),
                        .shares = shares_.data(),
                        .arrived = arrived_.data()},
                       how_);
  });
  check_cuda(cudaGetLastError(), "sampling");
  check_cuda(cudaMemcpyAsync(host_.data(), device_.data(), batch.answer_bytes(),
                             cudaMemcpyDeviceToHost, how_.stream),
             "sampling");
  check_cuda(cudaStreamSynchronize(how_.stream), "sampling");
}

template <typename Row, typename Answer>
std::vector<size_t> CudaSampler::run(const float* logits, int64_t stride, std::span<const Row> rows,
                                     std::span<Answer> out) {
  TRTMC_CHECK(rows.size() == out.size(), "one result for each row");
  const SampleMemory memory{host_.span(), device_.data(), scores_.data(), stride_};
  std::vector<size_t> left;
  for (size_t next = 0; next < rows.size();) {
    SampleBatch batch(vocab_size_, memory);
    std::vector<size_t> taken;
    for (; next < rows.size(); ++next) {
      const auto added = batch.add(rows[next], logits + rows[next].row * stride);
      if (added == SampleBatch::Added::kFull) break;
      (added == SampleBatch::Added::kTaken ? taken : left).push_back(next);
    }
    if (taken.empty()) continue;
    run_batch(batch);
    for (size_t i = 0; i < taken.size(); ++i) {
      if (!batch.read(static_cast<int>(i), out[taken[i]])) left.push_back(taken[i]);
    }
  }
  return left;
}

std::vector<size_t> CudaSampler::sample(const float* logits, int64_t stride,
                                        std::span<const SampleRow> rows, std::span<Sampled> out) {
  return run(logits, stride, rows, out);
}

std::vector<size_t> CudaSampler::score(const float* logits, int64_t stride,
                                       std::span<const ScoreRow> rows, std::span<TokenScore> out) {
  return run(logits, stride, rows, out);
}

}  // namespace trtmc::cuda
