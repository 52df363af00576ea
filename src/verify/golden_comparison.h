// Compares what an executor computes with recorded goldens, figure by figure.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"
#include "verify/goldens.h"
#include "verify/sequence_runner.h"
#include "verify/verify.h"

namespace trtmc {

// The worst figure seen, and where.
class Worst {
 public:
  explicit Worst(bool at_most) : at_most_(at_most) {}
  void take(double figure, const std::string& where);
  bool empty() const { return empty_; }
  Check check(std::string name, double threshold) const;

 private:
  bool at_most_;
  bool empty_ = true;
  double figure_ = 0;
  std::string where_;
};

// Compares hidden states of one case while a prompt runs: the probe of an executor.
class HiddenComparison {
 public:
  // While `runner` feeds the prompt of `of`, states are compared; a null case compares nothing.
  void watch(const GoldenCase* of, const Golden* golden, const SequenceRunner* runner);
  void observe(int layer, std::span<const float> hidden);
  void append_checks(double threshold, std::vector<Check>& checks) const;

 private:
  const GoldenCase* case_ = nullptr;
  const Golden* golden_ = nullptr;
  const SequenceRunner* runner_ = nullptr;
  bool expected_ = false;  // Some case had states to compare.
  Worst whole_{true}, norms_{true}, columns_{true};
};

class GoldenComparison {
 public:
  // Without `float32` only the checks of bfloat16 are made. `hidden` is what the executor's probe
  // feeds.
  GoldenComparison(const GoldenThresholds& thresholds, bool float32, HiddenComparison& hidden);

  void compare(const Golden& golden, Executor& executor);
  std::vector<Check> checks() const;

 private:
  void compare_prompt(const Golden& golden, const GoldenCase& of, SequenceRunner& runner);
  void compare_row(const GoldenCase& of, const Golden& golden, int position,
                   std::span<const float> logits);
  void compare_float32(const GoldenCase& of, const Golden& golden, int position,
                       std::span<const float> logits);
  void compare_bfloat16(const GoldenCase& of, const Golden& golden, int position,
                        std::span<const float> logits);
  void compare_continuation(const GoldenCase& of, SequenceRunner& runner);
  void compare_perplexity(const GoldenPerplexity& golden, SequenceRunner& runner);
  void append_float32(std::vector<Check>& checks) const;
  void append_bfloat16(std::vector<Check>& checks) const;

  GoldenThresholds thresholds_;
  bool float32_;
  HiddenComparison& hidden_;

  Worst whole_l2_{true}, columns_l2_{true}, whole_cosine_{false}, columns_cosine_{false};
  Worst logsumexp_{true}, perplexity_{true};
  int greedy_tokens_ = 0, greedy_mismatches_ = 0;
  std::string first_mismatch_;

  std::vector<double> bf16_whole_l2_, bf16_whole_cosine_, bf16_columns_l2_, bf16_columns_cosine_;
  int decided_ = 0, agreed_ = 0;
  std::string first_disagreement_;
  std::vector<double> edit_distances_;
};

}  // namespace trtmc
