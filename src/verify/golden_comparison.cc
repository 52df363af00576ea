#include "verify/golden_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "model/sampling.h"
#include "verify/metrics.h"

namespace trtmc {
namespace {

// The index of `position` among the rising `positions`.
std::optional<size_t> find_position(const std::vector<int>& positions, int position) {
  const auto at = std::lower_bound(positions.begin(), positions.end(), position);
  if (at == positions.end() || *at != position) return std::nullopt;
  return static_cast<size_t>(at - positions.begin());
}

std::vector<float> pick(std::span<const float> values, const std::vector<int>& columns) {
  std::vector<float> out;
  out.reserve(columns.size());
  for (const int column : columns) out.push_back(values[static_cast<size_t>(column)]);
  return out;
}

std::string place(const GoldenCase& of, int position) {
  return fmt::format("{}, position {}", of.name, position);
}

}  // namespace

void HiddenComparison::watch(const GoldenCase* of, const Golden* golden,
                             const SequenceRunner* runner) {
  case_ = of != nullptr && of->float32 && of->float32->hidden ? of : nullptr;
  golden_ = golden;
  runner_ = runner;
  expected_ = expected_ || case_ != nullptr;
}

void HiddenComparison::observe(int layer, std::span<const float> hidden) {
  if (case_ == nullptr) return;
  const GoldenRecord& record = *case_->float32;
  const auto width = static_cast<size_t>(golden_->hidden_size);
  const auto state = static_cast<size_t>(layer) + 1;
  const double column_share =
      std::sqrt(static_cast<double>(golden_->hidden_columns.size()) / static_cast<double>(width));
  for (size_t i = 0; i * width < hidden.size(); ++i) {
    const int position = runner_->step_start() + static_cast<int>(i);
    const std::span<const float> value = hidden.subspan(i * width, width);
    const auto where = [&] { return fmt::format("{}, layer {}", place(*case_, position), layer); };
    if (const auto at = find_position(case_->hidden_positions, position)) {
      const size_t row = state * case_->hidden_positions.size() + *at;
      whole_.take(relative_l2(value, record.hidden->whole.row(row)), where());
    }
    if (const auto at = find_position(record.positions, position)) {
      const double expected = record.hidden->norms.row(state)[*at];
      norms_.take(std::abs(euclidean_norm(value) / expected - 1), where());
    }
    if (const auto at = find_position(case_->hidden_column_positions, position)) {
      const size_t row = state * case_->hidden_column_positions.size() + *at;
      std::vector<float> error = pick(value, golden_->hidden_columns);
      const std::span<const float> expected = record.hidden->columns.row(row);
      for (size_t k = 0; k < error.size(); ++k) error[k] -= expected[k];
      // Against the share of the whole vector's length that so many columns have: a few columns
      // may be near zero by chance.
      columns_.take(euclidean_norm(error) / (euclidean_norm(value) * column_share), where());
    }
  }
}

void HiddenComparison::append_checks(double threshold, std::vector<Check>& checks) const {
  if (!expected_) return;
  if (whole_.empty()) {
    checks.push_back({"float32: hidden states, relative L2, worst",
                      std::numeric_limits<double>::max(), threshold, true,
                      "the backend shows none"});
    return;
  }
  checks.push_back(whole_.check("float32: hidden states, relative L2, worst", threshold));
  checks.push_back(columns_.check("float32: hidden states, some columns, worst", threshold));
  checks.push_back(norms_.check("float32: hidden states, relative norm, worst", threshold));
}

GoldenComparison::GoldenComparison(const GoldenThresholds& thresholds, KvType kv_type,
                                   HiddenComparison& hidden)
    : thresholds_(thresholds),
      float32_(kv_type == KvType::kF32),
      hidden_(hidden),
      continuations_(thresholds.bfloat16, float32_) {}

void GoldenComparison::compare(const Golden& golden, Executor& executor) {
  SequenceRunner runner(executor);
  for (const GoldenCase& of : golden.cases) {
    compare_prompt(golden, of, runner);
    continuations_.compare(of, runner);
  }
  if (golden.perplexity && float32_) compare_perplexity(*golden.perplexity, runner);
}

void GoldenComparison::compare_prompt(const Golden& golden, const GoldenCase& of,
                                      SequenceRunner& runner) {
  std::vector<int> wanted = of.full_positions;
  for (const auto* record : {&of.float32, &of.bfloat16}) {
    if (*record) {
      wanted.insert(wanted.end(), (*record)->positions.begin(), (*record)->positions.end());
    }
  }
  if (of.bfloat16_kv && !float32_) {
    wanted.insert(wanted.end(), of.bfloat16_kv->positions.begin(), of.bfloat16_kv->positions.end());
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  hidden_.watch(float32_ ? &of : nullptr, &golden, &runner);
  runner.run(of.prompt, 0, wanted, [&](int position, std::span<const float> logits) {
    compare_row(of, golden, position, logits);
  });
  hidden_.watch(nullptr, nullptr, nullptr);
}

void GoldenComparison::compare_row(const GoldenCase& of, const Golden& golden, int position,
                                   std::span<const float> logits) {
  if (of.float32 && float32_) compare_float32(of, golden, position, logits);
  if (of.bfloat16) compare_bfloat16(of, golden, position, logits);
  if (of.bfloat16_kv && !float32_) compare_bfloat16_kv(of, golden, position, logits);
}

void GoldenComparison::compare_float32(const GoldenCase& of, const Golden& golden, int position,
                                       std::span<const float> logits) {
  const GoldenRecord& record = *of.float32;
  if (const auto at = find_position(of.full_positions, position)) {
    whole_l2_.take(relative_l2(logits, record.logits.row(*at)), place(of, position));
    whole_cosine_.take(cosine(logits, record.logits.row(*at)), place(of, position));
  }
  if (const auto at = find_position(record.positions, position)) {
    const std::vector<float> columns = pick(logits, golden.columns);
    columns_l2_.take(relative_l2(columns, record.columns.row(*at)), place(of, position));
    columns_cosine_.take(cosine(columns, record.columns.row(*at)), place(of, position));
    const double expected = record.logsumexp.values[*at];
    logsumexp_.take(std::abs(log_sum_exp(logits) - expected), place(of, position));
  }
}

void GoldenComparison::compare_bfloat16(const GoldenCase& of, const Golden& golden, int position,
                                        std::span<const float> logits) {
  const GoldenRecord& record = *of.bfloat16;
  if (const auto at = find_position(of.full_positions, position)) {
    bf16_whole_l2_.push_back(relative_l2(logits, record.logits.row(*at)));
    bf16_whole_cosine_.push_back(cosine(logits, record.logits.row(*at)));
  }
  const auto at = find_position(record.positions, position);
  if (!at) return;
  const std::vector<float> columns = pick(logits, golden.columns);
  bf16_columns_l2_.push_back(relative_l2(columns, record.columns.row(*at)));
  bf16_columns_cosine_.push_back(cosine(columns, record.columns.row(*at)));
  if (of.float32) {
    if (const auto exact_at = find_position(of.float32->positions, position)) {
      const std::span<const float> exact = of.float32->columns.row(*exact_at);
      our_error_ += squared_distance(columns, exact);
      oracle_error_ += squared_distance(record.columns.row(*at), exact);
    }
  }
  if (record.margins.values[*at] < thresholds_.bfloat16.argmax_margin) return;
  ++decided_;
  if (argmax(logits) == record.argmax[*at]) {
    ++agreed_;
  } else if (first_disagreement_.empty()) {
    first_disagreement_ = place(of, position);
  }
}

void GoldenComparison::compare_bfloat16_kv(const GoldenCase& of, const Golden& golden, int position,
                                           std::span<const float> logits) {
  const auto at = find_position(of.bfloat16_kv->positions, position);
  if (!at) return;
  const double distance =
      relative_l2(pick(logits, golden.columns), of.bfloat16_kv->columns.row(*at));
  const double noise = of.bfloat16_kv->noise.values[*at];
  kv_squares_ += distance * distance;
  kv_noise_squares_ += noise * noise;
  ++kv_rows_;
}

void GoldenComparison::compare_perplexity(const GoldenPerplexity& golden, SequenceRunner& runner) {
  const auto window = static_cast<size_t>(golden.window);
  for (size_t i = 0; i < golden.nll.size(); ++i) {
    const size_t start = i * window;
    const std::span<const TokenId> ids =
        std::span(golden.ids).subspan(start, std::min(window, golden.ids.size() - start));
    std::vector<int> scored(ids.size() - 1);
    std::iota(scored.begin(), scored.end(), 0);
    double sum = 0;
    runner.run(ids, 0, scored, [&](int position, std::span<const float> logits) {
      sum -= log_probability(logits, ids[static_cast<size_t>(position) + 1]);
    });
    const double tokens = static_cast<double>(scored.size());
    const double ours = std::exp(sum / tokens), theirs = std::exp(golden.nll[i] / tokens);
    perplexity_.take(std::abs(ours / theirs - 1),
                     fmt::format("window {}: {:.5f}, Transformers {:.5f}", i, ours, theirs));
  }
}

std::vector<Check> GoldenComparison::checks() const {
  std::vector<Check> out;
  if (float32_) append_float32(out);
  append_bfloat16(out);
  append_bfloat16_kv(out);
  return out;
}

void GoldenComparison::append_float32(std::vector<Check>& checks) const {
  const Float32Thresholds& limit = thresholds_.float32;
  const auto append = [&](const Worst& worst, const char* name, double threshold) {
    if (!worst.empty()) checks.push_back(worst.check(name, threshold));
  };
  append(whole_l2_, "float32: logits, relative L2, worst of whole rows", limit.logits_relative_l2);
  append(columns_l2_, "float32: logits, relative L2, worst position", limit.logits_relative_l2);
  append(whole_cosine_, "float32: logits, cosine, worst of whole rows", limit.logits_cosine);
  append(columns_cosine_, "float32: logits, cosine, worst position", limit.logits_cosine);
  append(logsumexp_, "float32: log-sum-exp, difference, worst position",
         limit.logsumexp_difference);
  hidden_.append_checks(limit.hidden_relative_l2, checks);
  continuations_.append_float32(limit.greedy_mismatches, checks);
  append(perplexity_, "float32: perplexity, relative difference, worst window",
         limit.perplexity_relative);
}

void GoldenComparison::append_bfloat16(std::vector<Check>& checks) const {
  if (bf16_columns_l2_.empty()) return;
  const Bfloat16Thresholds& limit = thresholds_.bfloat16;
  const auto rows = [](const std::vector<double>& of) {
    return fmt::format("of {} rows", of.size());
  };
  checks.push_back({"bfloat16: logits, cosine, 5th percentile of whole rows",
                    percentile(bf16_whole_cosine_, 5), limit.cosine_p5, false,
                    rows(bf16_whole_cosine_)});
  checks.push_back({"bfloat16: logits, cosine, 5th percentile of positions",
                    percentile(bf16_columns_cosine_, 5), limit.cosine_p5, false,
                    rows(bf16_columns_cosine_)});
  checks.push_back({"bfloat16: logits, relative L2, 95th percentile of whole rows",
                    finite(percentile(bf16_whole_l2_, 95)), limit.relative_l2_p95, true,
                    rows(bf16_whole_l2_)});
  checks.push_back({"bfloat16: logits, relative L2, 95th percentile of positions",
                    finite(percentile(bf16_columns_l2_, 95)), limit.relative_l2_p95, true,
                    rows(bf16_columns_l2_)});
  if (oracle_error_ > 0) {
    checks.push_back({"bfloat16: error against float32, share of the oracle's own",
                      finite(std::sqrt(our_error_ / oracle_error_)), limit.float32_error_share,
                      true, rows(bf16_columns_l2_)});
  }
  if (decided_ > 0) {
    checks.push_back({"bfloat16: argmax agreement where decided, prompts",
                      static_cast<double>(agreed_) / decided_, limit.argmax_agreement, false,
                      first_disagreement_.empty()
                          ? fmt::format("{} positions", decided_)
                          : fmt::format("{} of {} differ, first in {}", decided_ - agreed_,
                                        decided_, first_disagreement_)});
  }
  continuations_.append_bfloat16(checks);
}

void GoldenComparison::append_bfloat16_kv(std::vector<Check>& checks) const {
  if (kv_rows_ == 0) return;
  const Bfloat16KvThresholds& limit = thresholds_.bfloat16_kv;
  const double noise = std::sqrt(kv_noise_squares_ / kv_rows_);
  checks.push_back(
      {"bfloat16 KV: logits, relative L2, root mean square",
       finite(std::sqrt(kv_squares_ / kv_rows_)), limit.noise_factor * noise + limit.relative_l2,
       true, fmt::format("of {} positions; the oracle's own noise {:.2g}", kv_rows_, noise)});
}

}  // namespace trtmc
