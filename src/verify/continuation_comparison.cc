#include "verify/continuation_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "verify/metrics.h"

namespace trtmc {
namespace {

// A unit in the last of bf16's eight significant bits.
double bfloat16_unit(double value) {
  constexpr int kFractionBits = 7;
  return value == 0 ? 0 : std::ldexp(1.0, std::ilogb(value) - kFractionBits);
}

}  // namespace

bool is_near_tie(const GoldenRecord& record, size_t i, TokenId token, double margin) {
  const std::vector<TokenId>& first = record.continuation_first[i];
  const auto at = std::find(first.begin(), first.end(), token);
  if (at == first.end()) return false;
  const std::span<const float> logits = record.continuation_logits.row(i);
  const double best = logits[0];
  const double gap = best - logits[static_cast<size_t>(at - first.begin())];
  return gap < margin || gap <= 2 * bfloat16_unit(best);
}

void ContinuationComparison::compare(const GoldenCase& of, SequenceRunner& runner) {
  const size_t of_float32 = of.float32 && float32_ ? of.float32->continuation.size() : 0;
  const size_t of_bfloat16 = of.bfloat16 ? of.bfloat16->continuation.size() : 0;
  // What stops a sequence is no matter here: the recorded tokens end where Transformers stopped.
  const std::vector<TokenId> tokens =
      runner.continue_greedily(of.prompt, std::max(of_float32, of_bfloat16));
  if (of_float32 > 0) compare_float32(of, std::span(tokens).first(of_float32));
  if (of_bfloat16 == 0) return;
  const std::span<const TokenId> text = std::span(tokens).first(of_bfloat16);
  plain_distances_.push_back(edit_distance(text, of.bfloat16->continuation));
  if (plain_distances_.back() == 0) {
    compare_bfloat16(of, text);
  } else {
    compare_bfloat16(of, runner.choices_along(of.prompt, of.bfloat16->continuation));
  }
}

void ContinuationComparison::compare_float32(const GoldenCase& of,
                                             std::span<const TokenId> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    ++float32_tokens_;
    if (tokens[i] == of.float32->continuation[i]) continue;
    ++float32_mismatches_;
    if (first_mismatch_.empty()) first_mismatch_ = fmt::format("first in {}, token {}", of.name, i);
  }
}

void ContinuationComparison::compare_bfloat16(const GoldenCase& of,
                                              std::span<const TokenId> choices) {
  const GoldenRecord& record = *of.bfloat16;
  int wrong = 0;
  std::string first_wrong;
  for (size_t i = 0; i < choices.size(); ++i) {
    const std::span<const float> logits = record.continuation_logits.row(i);
    const bool same = choices[i] == record.continuation[i];
    ++tokens_;
    if (logits[0] - logits[1] >= thresholds_.argmax_margin) {
      ++decided_;
      if (same) ++agreed_;
    }
    if (same) continue;
    if (is_near_tie(record, i, choices[i], thresholds_.argmax_margin)) {
      ++others_taken_;
    } else if (++wrong == 1) {
      first_wrong = fmt::format(", first token {}", i);
    }
  }
  wrong_.take(static_cast<double>(wrong) / static_cast<double>(choices.size()),
              of.name + first_wrong);
}

void ContinuationComparison::append_float32(double threshold, std::vector<Check>& checks) const {
  if (float32_tokens_ == 0) return;
  checks.push_back(
      {"float32: greedy tokens that differ", static_cast<double>(float32_mismatches_), threshold,
       true, first_mismatch_.empty() ? fmt::format("of {}", float32_tokens_) : first_mismatch_});
}

void ContinuationComparison::append_bfloat16(std::vector<Check>& checks) const {
  if (tokens_ == 0) return;
  if (decided_ > 0) {
    checks.push_back({"bfloat16: argmax agreement where decided, continuations",
                      static_cast<double>(agreed_) / decided_, thresholds_.argmax_agreement, false,
                      fmt::format("{} of {} tokens are decided", decided_, tokens_)});
  }
  Check wrong = wrong_.check("bfloat16: continuation, tokens beyond a near-tie, worst prompt",
                             thresholds_.continuation_edit_distance);
  const double sum = std::accumulate(plain_distances_.begin(), plain_distances_.end(), 0.0);
  const std::string plain = fmt::format(
      "{} near-ties taken the other way; text left to itself: edit distance mean {:.3f}, worst "
      "{:.3f} of {}",
      others_taken_, sum / static_cast<double>(plain_distances_.size()),
      *std::max_element(plain_distances_.begin(), plain_distances_.end()), plain_distances_.size());
  wrong.note = wrong.figure > 0 ? fmt::format("{}; {}", wrong.note, plain) : plain;
  checks.push_back(wrong);
}

}  // namespace trtmc
