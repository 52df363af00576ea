#include "verify/continuation_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/fake_executor.h"

namespace trtmc {
namespace {

using testing::HasSubstr;

// The oracle says 1, 2, 3 after the prompt 0; its second choices are 4, 5, 6 with the gaps given.
GoldenCase golden_case(std::vector<float> gaps) {
  GoldenRecord record;
  record.continuation = {1, 2, 3};
  record.continuation_first = {{1, 4}, {2, 5}, {3, 6}};
  record.continuation_logits.shape = {3, 2};
  for (const float gap : gaps) {
    record.continuation_logits.values.insert(record.continuation_logits.values.end(),
                                             {3.0F, 3.0F - gap});
  }
  GoldenCase of;
  of.name = "abc";
  of.prompt = {0};
  of.bfloat16 = std::move(record);
  return of;
}

// An executor that says `choices[i]` after i tokens of text, whatever they are, when they follow
// the oracle's text; else 7.
std::vector<Check> checks_of(const GoldenCase& of, std::vector<TokenId> choices) {
  const auto say = [&](std::span<const TokenId> ids) {
    const std::span<const TokenId> text = ids.subspan(1);
    const bool follows = std::equal(text.begin(), text.end(), of.bfloat16->continuation.begin());
    std::vector<float> logits(8);
    logits[static_cast<size_t>(follows ? choices[text.size()] : 7)] = 1;
    return logits;
  };
  FakeExecutor executor(
      8, {.num_blocks = 4, .block_size = 4, .max_tokens_per_step = 4, .max_sequences_per_step = 1},
      say);
  SequenceRunner runner(executor);
  ContinuationComparison comparison({.cosine_p5 = 0.99,
                                     .relative_l2_p95 = 0.05,
                                     .float32_error_share = 1,
                                     .argmax_agreement = 0.98,
                                     .argmax_margin = 0.1,
                                     .continuation_edit_distance = 0},
                                    false);
  comparison.compare(of, runner);
  std::vector<Check> checks;
  comparison.append_bfloat16(checks);
  return checks;
}

TEST(NearTie, IsLessThanTheMarginOrTwoUnitsOfBfloat16) {
  GoldenRecord record;
  record.continuation_first = {{7, 3, 5, 1}, {7, 3, 5, 1}};
  // Near 3 a unit is 1/64, near 40 it is 1/4.
  record.continuation_logits = {{2, 4}, {3.0F, 2.92F, 2.89F, 1.0F, 40.0F, 40.0F, 39.5F, 39.25F}};
  EXPECT_TRUE(is_near_tie(record, 0, 3, 0.1));
  EXPECT_FALSE(is_near_tie(record, 0, 5, 0.1));
  EXPECT_FALSE(is_near_tie(record, 0, 2, 0.1)) << "it is none of the first";
  EXPECT_TRUE(is_near_tie(record, 1, 3, 0.1));
  EXPECT_TRUE(is_near_tie(record, 1, 5, 0.1));
  EXPECT_FALSE(is_near_tie(record, 1, 1, 0.1));
}

TEST(Continuation, OfTheOracleHasNothingWrong) {
  const std::vector<Check> checks = checks_of(golden_case({1, 1, 1}), {1, 2, 3});
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].figure, 1);
  EXPECT_EQ(checks[1].figure, 0);
}

TEST(Continuation, TakesANearTieAndIsJudgedAfterIt) {
  const std::vector<Check> checks = checks_of(golden_case({0.05F, 1, 1}), {4, 2, 3});
  EXPECT_EQ(checks[0].figure, 1) << "of two decided tokens";
  EXPECT_TRUE(checks[1].passed());
  EXPECT_THAT(checks[1].note, HasSubstr("1 near-ties taken the other way"));
  EXPECT_THAT(checks[1].note, HasSubstr("edit distance mean 1.000"));
}

TEST(Continuation, AfterANearTieCanStillBeWrong) {
  const std::vector<Check> checks = checks_of(golden_case({0.05F, 1, 1}), {4, 2, 6});
  EXPECT_EQ(checks[0].figure, 0.5);
  EXPECT_EQ(checks[1].figure, 1.0 / 3);
  EXPECT_THAT(checks[1].note, HasSubstr("abc, first token 2"));
}

TEST(Continuation, MayNotTakeATokenThatTheOracleDidNotNearlySay) {
  EXPECT_FALSE(checks_of(golden_case({0.05F, 1, 1}), {5, 2, 3})[1].passed());
}

}  // namespace
}  // namespace trtmc
