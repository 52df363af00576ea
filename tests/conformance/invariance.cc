#include "tests/conformance/invariance.h"

#include <gtest/gtest.h>

namespace trtmc {

void Invariance::expect_same_in_chunks() const {
  const std::vector<std::vector<int>> kChunkings = {{1}, {2}, {7}, {32}, {31, 2, 33, 1}, {64, 3}};
  for (const auto& chunks : kChunkings) {
    const auto executor = make();
    EXPECT_EQ(run_chunked(*executor, tokens, chunks, block_range(*executor, kNumTokens)), whole)
        << testing::PrintToString(chunks);
  }
}

void Invariance::expect_same_beside_neighbours() const {
  const auto executor = make();
  const auto table = block_range(*executor, kNumTokens);
  const auto next = static_cast<BlockId>(table.size());
  const auto other = random_tokens(spec, 40, 2);
  const auto third = random_tokens(spec, 5, 3);
  const std::vector<TokenId> head(tokens.begin(), tokens.begin() + 50);
  // Between two others; then one token at a time beside another that goes on.
  Rows rows = run_step(*executor, {{other, 0, block_range(*executor, 40, next)},
                                   {head, 0, table},
                                   {third, 0, block_range(*executor, 5, next + 2)}});
  rows = {rows.begin() + 40, rows.begin() + 90};
  for (int t = 50; t < kNumTokens; ++t) {
    const Rows step = run_step(*executor, {{{tokens[static_cast<size_t>(t)]}, t, table},
                                           {{1}, t - 45, block_range(*executor, 40, next + 2)}});
    rows.push_back(step[0]);
  }
  EXPECT_EQ(rows, whole);
}

void Invariance::expect_same_with_any_block_table() const {
  const auto executor = make();
  EXPECT_EQ(run_chunked(*executor, tokens, {kNumTokens}, {5, 0, 3}), whole);
}

void Invariance::expect_same_with_a_copied_block() const {
  const auto executor = make();
  const std::vector<TokenId> head(tokens.begin(), tokens.begin() + 70);
  const std::vector<TokenId> tail(tokens.begin() + 70, tokens.end());
  run_step(*executor, {{head, 0, {0, 1, 2}}});
  executor->copy_block(2, 4);
  run_step(*executor, {{{1, 2, 3}, 70, {0, 1, 2}}});  // Goes its own way in the original.
  const Rows rows = run_step(*executor, {{tail, 70, {0, 1, 4}}});
  EXPECT_EQ(rows, Rows(whole.begin() + 70, whole.end()));
}

void Invariance::expect_same_with_stale_memory() const {
  const auto executor = make();
  run_whole(*executor, random_tokens(spec, 90, 9));
  EXPECT_EQ(run_whole(*executor, tokens), whole);
}

}  // namespace trtmc
