#include <algorithm>
#include <vector>

#include "backends/backend.h"
#include "backends/host_logits.h"
#include "base/check.h"

namespace trtmc {

void Logits::sample(std::span<const SampleRow> rows, std::span<Sampled> out) const {
  TRTMC_CHECK(rows.size() == out.size(), "one result for each row");
  std::vector<float> logits(static_cast<size_t>(vocab_size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    copy_row(rows[i].row, logits);
    out[i] = sample_token(logits, rows[i]);
  }
}

void Logits::score(std::span<const ScoreRow> rows, std::span<TokenScore> out) const {
  TRTMC_CHECK(rows.size() == out.size(), "one result for each row");
  SamplingParams greedy;
  greedy.temperature = 0;
  std::vector<float> logits(static_cast<size_t>(vocab_size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    copy_row(rows[i].row, logits);
    out[i].logprob = log_probability(logits, rows[i].target);
    out[i].top.clear();
    if (rows[i].top_logprobs == 0) continue;
    const SampleRow most_likely{.row = rows[i].row,
                                .params = &greedy,
                                .draw = 0,
                                .counts = {},
                                .allowed = {},
                                .top_logprobs = rows[i].top_logprobs};
    out[i].top = sample_token(logits, most_likely).top;
  }
}

HostLogits::HostLogits(std::span<const float> values, int num_rows, int vocab_size,
                       int64_t row_stride)
    : values_(values),
      num_rows_(num_rows),
      vocab_size_(vocab_size),
      row_stride_(static_cast<size_t>(row_stride)) {
  TRTMC_CHECK(values.size() == static_cast<size_t>(num_rows) * row_stride_ &&
                  row_stride >= int64_t{vocab_size},
              "logits of another shape");
}

std::span<const float> HostLogits::row_values(int row) const {
  TRTMC_CHECK(row >= 0 && row < num_rows_, "a row of logits that was not asked for");
  return values_.subspan(static_cast<size_t>(row) * row_stride_, static_cast<size_t>(vocab_size_));
}

void HostLogits::copy_row(int row, std::span<float> out) const {
  TRTMC_CHECK(out.size() == static_cast<size_t>(vocab_size_), "a row of logits is the vocabulary");
  std::ranges::copy(row_values(row), out.begin());
}

void HostLogits::sample(std::span<const SampleRow> rows, std::span<Sampled> out) const {
  TRTMC_CHECK(rows.size() == out.size(), "one result for each row");
  for (size_t i = 0; i < rows.size(); ++i) out[i] = sample_token(row_values(rows[i].row), rows[i]);
}

}  // namespace trtmc
