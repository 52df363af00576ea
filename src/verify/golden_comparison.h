// Compares what an executor computes with recorded goldens, figure by figure.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"
#include "verify/continuation_comparison.h"
#include "verify/goldens.h"
#include "verify/sequence_runner.h"
#include "verify/verify.h"
#include "verify/worst.h"

namespace trtmc {

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
  // The checks of float32 are made where KV is float32, those of bfloat16_kv where it is bf16.
  // `hidden` is what the executor's probe feeds.
  GoldenComparison(const GoldenThresholds& thresholds, KvType kv_type, HiddenComparison& hidden);

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
  void compare_bfloat16_kv(const GoldenCase& of, const Golden& golden, int position,
                           std::span<const float> logits);
  void compare_perplexity(const GoldenPerplexity& golden, SequenceRunner& runner);
  void append_float32(std::vector<Check>& checks) const;
  void append_bfloat16(std::vector<Check>& checks) const;
  void append_bfloat16_kv(std::vector<Check>& checks) const;

  GoldenThresholds thresholds_;
  bool float32_;
  HiddenComparison& hidden_;

  Worst whole_l2_{true}, columns_l2_{true}, whole_cosine_{false}, columns_cosine_{false};
  Worst logsumexp_{true}, perplexity_{true};

  std::vector<double> bf16_whole_l2_, bf16_whole_cosine_, bf16_columns_l2_, bf16_columns_cosine_;
  // Squared distances from float32 at the positions of bfloat16, summed: ours and the oracle's.
  double our_error_ = 0, oracle_error_ = 0;
  int decided_ = 0, agreed_ = 0;
  std::string first_disagreement_;

  double kv_squares_ = 0, kv_noise_squares_ = 0;
  int kv_rows_ = 0;

  ContinuationComparison continuations_;
};

}  // namespace trtmc
