// What never changes a bit, as checks that any executor can be held to: chunks, neighbours in the
// batch, the block table, copies, what lay in memory before.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/conformance/conformance.h"

namespace trtmc {

// One model's executors, each with room for three sequences of kNumTokens tokens, and a sequence.
struct Invariance {
  static constexpr int kNumTokens = 75;

  std::function<std::unique_ptr<Executor>()> make;
  std::vector<TokenId> tokens;  // [kNumTokens]
  Rows whole;                   // Their logits, computed in one step.
  DecoderSpec spec;

  void expect_same_in_chunks() const;
  void expect_same_beside_neighbours() const;
  void expect_same_with_any_block_table() const;
  void expect_same_with_a_copied_block() const;
  void expect_same_with_stale_memory() const;
};

}  // namespace trtmc
