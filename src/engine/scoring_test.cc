#include "engine/scoring.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "tests/support/captured_log.h"
#include "tests/support/fake_executor.h"

namespace trtmc {
namespace {

constexpr int kVocabulary = 30;

EngineModel model_of(FakeExecutor& executor, int context_length = 1000) {
  return {.executor = &executor,
          .tokenizer = nullptr,
          .vocab_size = kVocabulary,
          .context_length = context_length};
}

constexpr Limits kLimits = {
    .num_blocks = 40, .block_size = 4, .max_tokens_per_step = 8, .max_sequences_per_step = 1};

std::vector<TokenId> some_ids(int count) {
  std::vector<TokenId> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * i + 3 * i) % kVocabulary);
  return ids;
}

ErrorCode failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(ScoreTokens, GivesEachTokensLogLikelihoodAfterThoseBeforeIt) {
  FakeExecutor executor(kVocabulary, kLimits);
  const auto ids = some_ids(50);
  const TextScore score = score_tokens(model_of(executor), ids, 0);
  ASSERT_EQ(score.token_logprobs.size(), 50u);
  EXPECT_TRUE(std::isnan(score.token_logprobs[0]));
  double sum = 0;
  for (size_t i = 1; i < ids.size(); ++i) {
    const auto logits = hashed_logits(std::span(ids).first(i), kVocabulary);
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    const double expected = logits[static_cast<size_t>(ids[i])] - std::log(total);
    EXPECT_NEAR(score.token_logprobs[i], expected, 1e-12);
    sum += expected;
  }
  EXPECT_EQ(score.scored, 49);
  EXPECT_NEAR(score.logprob_sum, sum, 1e-10);
  EXPECT_NEAR(score.perplexity(), std::exp(-sum / 49), 1e-10);
}

TEST(ScoreTokens, EachWindowStartsAnew) {
  FakeExecutor executor(kVocabulary, kLimits);
  const auto ids = some_ids(50);
  const TextScore score = score_tokens(model_of(executor), ids, 20);
  for (const size_t start : {0u, 20u, 40u}) {
    EXPECT_TRUE(std::isnan(score.token_logprobs[start]));
    const auto logits = hashed_logits(std::span(ids).subspan(start, 3), kVocabulary);
    EXPECT_EQ(score.token_logprobs[start + 3], log_probability(logits, ids[start + 3]));
  }
  EXPECT_EQ(score.scored, 47);
}

// Every token equally likely: the perplexity is the size of the vocabulary.
TEST(ScoreTokens, AUniformModelHasTheVocabularyAsPerplexity) {
  FakeExecutor executor(kVocabulary, kLimits, [](std::span<const TokenId>) {
    return std::vector<float>(kVocabulary, 2.5f);
  });
  EXPECT_NEAR(score_tokens(model_of(executor), some_ids(30), 0).perplexity(), kVocabulary, 1e-9);
}

TEST(ScoreTokens, WindowsOfOneTokenScoreNothing) {
  FakeExecutor executor(kVocabulary, kLimits);
  const TextScore score = score_tokens(model_of(executor), some_ids(3), 1);
  EXPECT_EQ(score.scored, 0);
  EXPECT_TRUE(std::isnan(score.perplexity()));
  EXPECT_EQ(score_tokens(model_of(executor), {}, 0).scored, 0);
}

TEST(ScoreTokens, RefusesWhatDoesNotFit) {
  FakeExecutor executor(kVocabulary, kLimits);
  const auto refused = [&](const EngineModel& model, int count, int window) {
    return failure([&] { score_tokens(model, some_ids(count), window); }) ==
           ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(model_of(executor), 10, 161));  // 160 positions of KV memory.
  EXPECT_TRUE(refused(model_of(executor), 161, 0));
  EXPECT_TRUE(refused(model_of(executor, 15), 16, 0));
  EXPECT_TRUE(refused(model_of(executor, 15), 10, 16));
  EXPECT_TRUE(refused(model_of(executor), 10, -1));
  EXPECT_FALSE(refused(model_of(executor, 15), 15, 0));
  EXPECT_EQ(failure([&] { score_tokens(model_of(executor), std::vector<TokenId>{30}, 0); }),
            ErrorCode::kInvalidArgument);
}

TEST(ScoreTokens, ThroughAnEngineKeepsTheCodeOfItsError) {
  const CapturedLog log;
  FakeExecutor executor(kVocabulary, kLimits);
  executor.fail_next_step(Error(ErrorCode::kExhausted, "no memory for scratch"));
  const EngineModel model = model_of(executor, 64);
  Engine engine(model, {});
  EXPECT_EQ(failure([&] { score_tokens(engine, model, some_ids(5), 0); }), ErrorCode::kExhausted);
}

}  // namespace
}  // namespace trtmc
