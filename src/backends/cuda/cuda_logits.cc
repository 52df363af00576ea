#include "backends/cuda/cuda_logits.h"

#include <cmath>

#include "backends/cuda/check_cuda.h"
#include "base/check.h"

namespace trtmc::cuda {
namespace {

// Whether the largest logit is all that is asked for.
bool is_plain_greedy(const SampleRow& row) {
  const SamplingParams& params = *row.params;
  return params.temperature == 0 && params.logit_bias.empty() && !has_penalties(params) &&
         row.allowed.empty() && row.top_logprobs <= 0;
}

}  // namespace

CudaLogits::CudaLogits(const float* values, int64_t stride, int num_rows, int vocab_size,
                       std::span<const MostLikely> most_likely)
    : values_(values),
      stride_(stride),
      num_rows_(num_rows),
      vocab_size_(vocab_size),
      most_likely_(most_likely) {}

void CudaLogits::copy_row(int row, std::span<float> out) const {
  TRTMC_CHECK(row >= 0 && row < num_rows_, "a row of logits that was not asked for");
  TRTMC_CHECK(out.size() == static_cast<size_t>(vocab_size_), "a row of logits is the vocabulary");
  check_cuda(
      cudaMemcpy(out.data(), values_ + row * stride_, out.size_bytes(), cudaMemcpyDeviceToHost),
      "reading logits");
}

void CudaLogits::sample(std::span<const SampleRow> rows, std::span<Sampled> out) const {
  TRTMC_CHECK(rows.size() == out.size(), "one result for each row");
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i].row);
    // Where nothing is above minus infinity the host says what that means.
    if (row >= most_likely_.size() || !is_plain_greedy(rows[i]) ||
        std::isinf(most_likely_[row].logit)) {
      Logits::sample(rows.subspan(i, 1), out.subspan(i, 1));
      continue;
    }
    const MostLikely& first = most_likely_[row];
    out[i].token = first.token;
    out[i].logprob = rows[i].top_logprobs < 0 ? 0 : static_cast<float>(-std::log(first.exp_sum));
    out[i].top.clear();
  }
}

}  // namespace trtmc::cuda
