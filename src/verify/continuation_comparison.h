// Compares greedy texts with recorded ones, token by token.
//
// In float32 the tokens are a fact. In bf16 they are not where the oracle's own logits all but tie:
// there it might as well have said another token, after which no text is like its text. So each
// token of a bf16 text is judged after the oracle's own text before it, and has to be the oracle's
// or one that it nearly said.
#pragma once

#include <string>
#include <vector>

#include "verify/goldens.h"
#include "verify/sequence_runner.h"
#include "verify/verify.h"
#include "verify/worst.h"

namespace trtmc {

// Whether the oracle's choice of the token `i` of its continuation was between `token` and its own:
// their logits are less than `margin` apart, or not more than two units in the last place of bf16,
// one for each: that much its rounding makes of nothing.
bool is_near_tie(const GoldenRecord& record, size_t i, TokenId token, double margin);

class ContinuationComparison {
 public:
  ContinuationComparison(const Bfloat16Thresholds& thresholds, bool float32)
      : thresholds_(thresholds), float32_(float32) {}

  void compare(const GoldenCase& of, SequenceRunner& runner);
  void append_float32(double threshold, std::vector<Check>& checks) const;
  void append_bfloat16(std::vector<Check>& checks) const;

 private:
  void compare_float32(const GoldenCase& of, std::span<const TokenId> tokens);
  void compare_bfloat16(const GoldenCase& of, std::span<const TokenId> choices);

  Bfloat16Thresholds thresholds_;
  bool float32_;

  int float32_tokens_ = 0, float32_mismatches_ = 0;
  std::string first_mismatch_;

  int tokens_ = 0, decided_ = 0, agreed_ = 0;  // Decided: by at least the margin.
  int others_taken_ = 0;                       // Of near-ties.
  Worst wrong_{true};
  std::vector<double> plain_distances_;
};

}  // namespace trtmc
