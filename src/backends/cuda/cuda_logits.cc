#include "backends/cuda/cuda_logits.h"

#include <cmath>
#include <vector>

#include "backends/cuda/check_cuda.h"
#include "base/check.h"

namespace trtmc::cuda {
namespace {

// Whether the largest logit is all that is asked for.
bool is_plain_greedy(const SampleRow& row) {
  return row.params->temperature == 0 && !changes_scores(row) && row.top_logprobs <= 0;
}

}  // namespace

CudaLogits::CudaLogits(const float* values, int64_t stride, int num_rows, int vocab_size,
                       std::span<const MostLikely> most_likely, CudaSampler* sampler)
    : values_(values),
      stride_(stride),
      num_rows_(num_rows),
      vocab_size_(vocab_size),
      most_likely_(most_likely),
      sampler_(sampler) {}

void CudaLogits::copy_row(int row, std::span<float> out) const {
  TRTMC_CHECK(row >= 0 && row < num_rows_, "a row of logits that was not asked for");
  TRTMC_CHECK(out.size() == static_cast<size_t>(vocab_size_), "a row of logits is the vocabulary");
  check_cuda(
      cudaMemcpy(out.data(), values_ + row * stride_, out.size_bytes(), cudaMemcpyDeviceToHost),
      "reading logits");
}

bool CudaLogits::take_most_likely(const SampleRow& of, Sampled& out) const {
  const auto row = static_cast<size_t>(of.row);
  // Where nothing is above minus infinity the host says what that means.
  if (row >= most_likely_.size() || !is_plain_greedy(of) || std::isinf(most_likely_[row].logit)) {
    return false;
  }
  const MostLikely& first = most_likely_[row];
  out.token = first.token;
  out.logprob = of.top_logprobs < 0 ? 0 : static_cast<float>(-std::log(first.exp_sum));
  out.top.clear();
  return true;
}

void CudaLogits::sample(std::span<const SampleRow> rows, std::span<Sampled> out) const {
  TRTMC_CHECK(rows.size() == out.size(), "one result for each row");
  std::vector<SampleRow> others;
  std::vector<size_t> places;
  for (size_t i = 0; i < rows.size(); ++i) {
    TRTMC_CHECK(rows[i].row >= 0 && rows[i].row < num_rows_,
                "a row of logits that was not asked for");
    if (take_most_likely(rows[i], out[i])) continue;
    others.push_back(rows[i]);
    places.push_back(i);
  }
  if (others.empty()) return;
  std::vector<Sampled> sampled(others.size());
  for (const size_t i : sampler_->sample(values_, stride_, others, sampled)) {
    Logits::sample({&others[i], 1}, {&sampled[i], 1});
  }
  for (size_t i = 0; i < others.size(); ++i) out[places[i]] = std::move(sampled[i]);
}

void CudaLogits::score(std::span<const ScoreRow> rows, std::span<TokenScore> out) const {
  TRTMC_CHECK(rows.size() == out.size(), "one result for each row");
  for (const ScoreRow& row : rows) {
    TRTMC_CHECK(row.row >= 0 && row.row < num_rows_, "a row of logits that was not asked for");
  }
  for (const size_t i : sampler_->score(values_, stride_, rows, out)) {
    Logits::score(rows.subspan(i, 1), out.subspan(i, 1));
  }
}

}  // namespace trtmc::cuda
