#include "engine/engine_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/engine.h"
#include "tests/support/engine_answers.h"

namespace trtmc {
namespace {

using EngineStatsTest = EngineTest;

// A stream ends shortly before its step does, and numbers are those after the step.
EngineStats stats_after(const Engine& engine, int64_t generated_tokens) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (;;) {
    const EngineStats stats = engine.stats();
    const bool is_idle = stats.queued_requests == 0 && stats.running_sequences == 0;
    if (is_idle && stats.generated_tokens == generated_tokens) return stats;
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << stats.generated_tokens << " tokens generated";
      return stats;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_F(EngineStatsTest, AFreshEngineHasItsBlocksAndNothingElse) {
  const Engine engine(model_of(executor_), {});
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.kv_blocks, 64);
  EXPECT_EQ(stats.block_size, 4);
  EXPECT_EQ(stats.kv_blocks_used + stats.kv_blocks_cached, 0);
  EXPECT_EQ(stats.queued_requests + stats.running_sequences, 0);
  EXPECT_EQ(stats.steps + stats.computed_tokens + stats.prompt_tokens, 0);
}

TEST_F(EngineStatsTest, APromptAndItsAnswerAreCounted) {
  Engine engine(model_of(executor_), {});
  read_one(engine.submit(greedy_request(some_prompt(70, 1), 25)));
  const EngineStats stats = stats_after(engine, 25);
  EXPECT_EQ(stats.steps, 3 + 24);  // Chunks of 32, 32 and 6, the last of which gives a token.
  EXPECT_EQ(stats.computed_tokens, 70 + 24);
  EXPECT_EQ(stats.prompt_tokens, 70);
  EXPECT_EQ(stats.cached_tokens, 0);
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.kv_blocks_cached, 23);  // The full ones of 94 tokens.
  EXPECT_EQ(stats.failed_steps + stats.preemptions + stats.proposed_drafts, 0);
}

TEST_F(EngineStatsTest, WhatThePrefixCacheKnewIsCountedButNotComputed) {
  Engine engine(model_of(executor_), {});
  for (int i = 0; i < 2; ++i) {
    GenerationRequest request = greedy_request(some_prompt(21, 3), 6);
    request.n = 2;  // The second takes the prompt over from the first, which counts for neither.
    auto stream = engine.submit(request);
    read_all(stream);
  }
  const EngineStats stats = stats_after(engine, 2 * 2 * 6);
  EXPECT_EQ(stats.prompt_tokens, 2 * 21);
  EXPECT_EQ(stats.cached_tokens, 20);
  EXPECT_EQ(stats.computed_tokens, executor_.num_tokens());
}

TEST_F(EngineStatsTest, AStopIdIsDrawnButNotGenerated) {
  FakeExecutor executor(kVocabulary, kLimits, scripted(2, {10, 11, 12, 13}, kVocabulary));
  Engine engine(model_of(executor), {});
  GenerationRequest request = greedy_request({1, 2}, 4);
  request.stop_ids = {12};
  read_one(engine.submit(request));
  EXPECT_EQ(stats_after(engine, 2).steps, 3);
}

TEST_F(EngineStatsTest, WhoRunsHoldsBlocksAndWhoWaitsIsQueued) {
  EngineStats during;
  Engine engine(model_of(executor_), {});
  executor_.during_step = [&](int step) {
    if (step == 2) during = engine.stats();
  };
  auto stream = engine.submit(greedy_request(some_prompt(70, 1), 2));
  read_all(stream);
  stats_after(engine, 2);
  EXPECT_EQ(during.running_sequences, 1);
  EXPECT_EQ(during.kv_blocks_used, 18);  // For 70 tokens.
  EXPECT_EQ(during.computed_tokens, 64);
  EXPECT_EQ(during.prompt_tokens, 0);  // It is being read.
}

TEST_F(EngineStatsTest, StepsAreCountedByHowManySequencesTheyHad) {
  Gate gate(executor_);
  Engine engine(model_of(executor_), {});
  std::vector<TokenStream> streams;
  streams.push_back(engine.submit(greedy_request({1, 2}, 3)));
  gate.await_step();
  for (int i = 0; i < 4; ++i) streams.push_back(engine.submit(greedy_request({3, i}, 3)));
  EXPECT_EQ(engine.stats().queued_requests, 4);
  gate.open();
  for (TokenStream& stream : streams) read_all(stream);
  const EngineStats stats = stats_after(engine, 15);
  EXPECT_EQ(stats.step_sequences, 1 + 5 + 5 + 4);
  EXPECT_THAT(stats.steps_by_batch_size, testing::ElementsAre(1, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0));
}

TEST_F(EngineStatsTest, BlocksThatAreGivenUpAreCounted) {
  FakeExecutor small(
      kVocabulary,
      {.num_blocks = 12, .block_size = 2, .max_tokens_per_step = 8, .max_sequences_per_step = 4});
  Engine engine(model_of(small), {.prefix_cache = false});
  std::vector<TokenStream> streams;
  for (int i = 0; i < 6; ++i) {
    streams.push_back(engine.submit(greedy_request(some_prompt(4, i), 15)));
  }
  for (TokenStream& stream : streams) read_all(stream);
  const EngineStats stats = stats_after(engine, 6 * 15);
  // An answer needs 9 blocks of the 12 at its end, so that no two end side by side.
  EXPECT_GE(stats.preemptions, 1);
  EXPECT_EQ(stats.computed_tokens, small.num_tokens());
  EXPECT_EQ(stats.prompt_tokens, 6 * 4);
}

TEST_F(EngineStatsTest, DraftsAreCountedAndTheRightOnesToo) {
  const LogitsFunction round = [](std::span<const TokenId> ids) {
    std::vector<float> logits = hashed_logits(ids, kVocabulary);
    logits[static_cast<size_t>((ids.back() + 1) % 9)] += 9;
    return logits;
  };
  FakeExecutor executor(kVocabulary, kLimits, round);
  Engine engine(model_of(executor), {.speculate = true});
  read_one(engine.submit(greedy_request({0, 1, 2, 3}, 120)));
  const EngineStats stats = stats_after(engine, 120);
  EXPECT_EQ(stats.steps, executor.num_steps());
  EXPECT_EQ(stats.accepted_drafts, 120 - stats.steps);  // A step gives one token of its own.
  EXPECT_GT(stats.accepted_drafts, 40);
  EXPECT_EQ(stats.computed_tokens, 4 + (stats.steps - 1) + stats.proposed_drafts);
}

TEST_F(EngineStatsTest, AStepThatFailsIsCountedAsThat) {
  Engine engine(model_of(executor_), {});
  executor_.fail_next_step(Error(ErrorCode::kExhausted, "no memory"));
  read_one(engine.submit(greedy_request({1, 2}, 3)));
  read_one(engine.submit(greedy_request({1, 2}, 3)));
  const EngineStats stats = stats_after(engine, 3);
  EXPECT_EQ(stats.failed_steps, 1);
  EXPECT_EQ(stats.steps, 3);
}

}  // namespace
}  // namespace trtmc
