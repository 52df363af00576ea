#include "engine/model_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "tests/support/fake_executor.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

constexpr int kVocabulary = 4;
constexpr Limits kLimits = {
    .num_blocks = 40, .block_size = 4, .max_tokens_per_step = 8, .max_sequences_per_step = 1};
const std::vector<TokenId> kIds = {0, 1, 2, 3, 0, 2, 1, 3, 3, 1, 0};

EngineModel model_of(FakeExecutor& executor) {
  return {.executor = &executor,
          .tokenizer = nullptr,
          .vocab_size = kVocabulary,
          .context_length = 1000};
}

FakeExecutor constant(std::vector<float> logits) {
  return {kVocabulary, kLimits, [logits](std::span<const TokenId>) { return logits; }};
}

TEST(Divergence, IsThatOfTheDistributions) {
  // Of (1/2, 1/4, 1/8, 1/8) from the uniform one: log 4 less its entropy, 7/4 log 2.
  const std::vector<float> truth{std::log(4.0F), std::log(2.0F), 0, 0};
  const std::vector<float> uniform(4, 7.5F);
  EXPECT_NEAR(divergence(truth, uniform), 0.25 * std::log(2.0), 1e-7);
  // The other way round: log 1/4 less the mean of log 1/2, 1/4, 1/8, 1/8.
  EXPECT_NEAR(divergence(uniform, truth), 0.25 * std::log(2.0), 1e-7);
  // numpy: sum of p log(p / q) for softmax([1, 2, 3]) and softmax([3, 1, 0]).
  EXPECT_NEAR(divergence(std::vector<float>{1, 2, 3}, std::vector<float>{3, 1, 0}), 1.822630247150,
              1e-9);
}

TEST(Divergence, IsZeroOfTheSameAndOfWhatDiffersByAConstant) {
  EXPECT_EQ(divergence(std::vector<float>{1, -2, 3}, std::vector<float>{1, -2, 3}), 0);
  EXPECT_NEAR(divergence(std::vector<float>{1, -2, 3}, std::vector<float>{5, 2, 7}), 0, 1e-15);
}

TEST(Divergence, DoesNotOverflow) {
  // All of the truth on one token to which the other gives exp(-1000).
  EXPECT_NEAR(divergence(std::vector<float>{1000, 0}, std::vector<float>{0, 1000}), 1000, 1e-9);
}

TEST(CompareModels, TakesTheOtherModelAsTheTruth) {
  FakeExecutor ours = constant({0, 0, 0, 0});
  FakeExecutor theirs = constant({std::log(4.0F), std::log(2.0F), 0, 0});
  const auto result = compare_models(model_of(ours), model_of(theirs), kIds, 0);
  ASSERT_EQ(result.divergences.size(), 10U);
  EXPECT_NEAR(result.mean_divergence(), 0.25 * std::log(2.0), 1e-7);
  EXPECT_NEAR(result.largest_divergence(), 0.25 * std::log(2.0), 1e-7);
  EXPECT_NEAR(result.score.perplexity(), 4, 1e-9);
  // After the first come 0 twice, 1 three times, 2 twice and 3 three times.
  EXPECT_NEAR(result.other.logprob_sum, -(2 * 1 + 3 * 2 + 5 * 3) * std::log(2.0), 1e-6);
  EXPECT_EQ(result.top_agreement(), 1);  // Of equals the first.
}

TEST(CompareModels, ScoresAsScoreTokensDoes) {
  FakeExecutor ours(kVocabulary, kLimits), theirs = constant({0, 1, 2, 3});
  for (const int window : {0, 3, 4, 11}) {
    const auto result = compare_models(model_of(ours), model_of(theirs), kIds, window);
    const TextScore expected = score_tokens(model_of(ours), kIds, window);
    EXPECT_EQ(result.score.logprob_sum, expected.logprob_sum) << window;
    EXPECT_EQ(result.score.scored, expected.scored);
    EXPECT_EQ(result.divergences.size(), static_cast<size_t>(expected.scored));
  }
}

TEST(CompareModels, CountsWhereTheLikeliestTokenIsTheSame) {
  // The other model prefers token 3, this one the last that it saw.
  FakeExecutor ours(kVocabulary, kLimits, [](std::span<const TokenId> tokens) {
    std::vector<float> logits(kVocabulary, 0.0F);
    logits[static_cast<size_t>(tokens.back())] = 5;
    return logits;
  });
  FakeExecutor theirs = constant({0, 0, 0, 1});
  const auto result = compare_models(model_of(ours), model_of(theirs), kIds, 0);
  EXPECT_EQ(result.same_top, 3);  // Of the ten tokens that one follows, three are 3.
  EXPECT_DOUBLE_EQ(result.top_agreement(), 0.3);
}

TEST(CompareModels, AWindowTooLongIsRefused) {
  FakeExecutor ours(kVocabulary, kLimits), theirs(kVocabulary, kLimits);
  EXPECT_THROW(compare_models(model_of(ours), model_of(theirs), kIds, 161), Error);
}

TEST(ModelComparison, QuantilesAreNumpys) {
  ModelComparison comparison;
  comparison.divergences = {4, 1, 3, 2};
  EXPECT_EQ(comparison.divergence_quantile(0), 1);
  EXPECT_EQ(comparison.divergence_quantile(1), 4);
  EXPECT_DOUBLE_EQ(comparison.divergence_quantile(0.5), 2.5);
  EXPECT_DOUBLE_EQ(comparison.divergence_quantile(0.99),
                   3.97);  // numpy.quantile([4, 1, 3, 2], 0.99)
}

TEST(ModelComparison, OfNothingHasNoFigures) {
  const ModelComparison nothing;
  EXPECT_TRUE(std::isnan(nothing.mean_divergence()));
  EXPECT_TRUE(std::isnan(nothing.largest_divergence()));
  EXPECT_TRUE(std::isnan(nothing.divergence_quantile(0.5)));
  EXPECT_TRUE(std::isnan(nothing.top_agreement()));
}

TEST(CheckSameTokenizer, RefusesAnotherOne) {
  const TemporaryFolder folder;
  write_tiny_bundle(folder.path() / "a");
  write_tiny_bundle(folder.path() / "b", {.dtype = DType::kF32});
  write_tiny_bundle(folder.path() / "c", {.tokenizer = "other tables"});
  const Bundle bundle(folder.path() / "a");
  EXPECT_NO_THROW(check_same_tokenizer(bundle, Bundle(folder.path() / "b")));
  try {
    check_same_tokenizer(bundle, Bundle(folder.path() / "c"));
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("different tokenizers"));
  }
}

}  // namespace
}  // namespace trtmc
