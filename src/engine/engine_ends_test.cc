// How requests end before their time: cancelled, failed, refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "engine/engine.h"
#include "tests/support/engine_answers.h"

namespace trtmc {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(EngineTest, CancellingWithinAStepEndsTheRequest) {
  Gate gate(executor_);
  Engine engine(model_of(executor_), {});
  auto stream = engine.submit(greedy_request(some_prompt(5, 1), 200));
  gate.await_step();
  stream.cancel();
  gate.open();
  const Answer answer = read_all(stream).at(0);
  EXPECT_EQ(answer.finish, FinishReason::kCancelled);
  EXPECT_THAT(answer.tokens, IsEmpty());
  EXPECT_EQ(read_one(engine.submit(greedy_request({1}, 3))).tokens, greedy_answer({1}, 3));
}

TEST_F(EngineTest, AStreamThatDiesCancelsItsRequest) {
  Gate gate(executor_);
  Engine engine(model_of(executor_), {});
  {
    auto stream = engine.submit(greedy_request(some_prompt(5, 1), 200));
    gate.await_step();
  }
  gate.open();
  EXPECT_EQ(read_one(engine.submit(greedy_request({1}, 3))).tokens, greedy_answer({1}, 3));
  EXPECT_LE(executor_.num_tokens(), 5 + 3);
}

TEST_F(EngineTest, ARequestCancelledInTheQueueNeverRuns) {
  Gate gate(executor_);
  Engine engine(model_of(executor_), {});
  auto first = engine.submit(greedy_request({1}, 3));
  gate.await_step();
  auto second = engine.submit(greedy_request(some_prompt(30, 1), 3));
  second.cancel();
  gate.open();
  EXPECT_EQ(read_all(second).at(0).finish, FinishReason::kCancelled);
  EXPECT_EQ(read_all(first).at(0).tokens, greedy_answer({1}, 3));
  EXPECT_EQ(executor_.num_tokens(), 3);
}

TEST_F(EngineTest, AFailedStepEndsItsRequestsAndTheNextOnesRun) {
  executor_.fail_next_step(Error(ErrorCode::kExhausted, "no memory for scratch"));
  Engine engine(model_of(executor_), {});
  const Answer failed = read_one(engine.submit(greedy_request({1, 2}, 5)));
  EXPECT_EQ(failed.finish, FinishReason::kError);
  EXPECT_EQ(failed.error, "no memory for scratch");
  EXPECT_EQ(failed.events.back().error_code, ErrorCode::kExhausted);
  EXPECT_TRUE(engine.healthy());
  EXPECT_EQ(read_one(engine.submit(greedy_request({1, 2}, 5))).tokens, greedy_answer({1, 2}, 5));
}

TEST_F(EngineTest, AFailedCopyEndsItsChoices) {
  executor_.fail_next_copy(Error(ErrorCode::kExhausted, "no memory for a copy"));
  Engine engine(model_of(executor_), {});
  GenerationRequest request = greedy_request(some_prompt(7, 1), 3);
  request.n = 12;
  auto stream = engine.submit(request);
  const auto answers = read_all(stream);
  // Those of the step, 8 sequences. The others go on without the first.
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(answers[i].error, i < 8 ? "no memory for a copy" : "");
    if (i >= 8) {
      EXPECT_EQ(answers[i].tokens, greedy_answer(some_prompt(7, 1), 3));
    }
  }
  EXPECT_EQ(read_one(engine.submit(greedy_request({1, 2}, 5))).tokens, greedy_answer({1, 2}, 5));
}

TEST_F(EngineTest, ALostDeviceEndsEverythingAndIsSaid) {
  Gate gate(executor_);
  Engine engine(model_of(executor_), {});
  auto running = engine.submit(greedy_request({1, 2}, 5));
  gate.await_step();
  auto waiting = engine.submit(greedy_request({1}, 5));
  executor_.fail_next_step(Error(ErrorCode::kInternal, "the device fell off the bus"));
  gate.open();
  const Answer lost = read_all(running).at(0);
  EXPECT_EQ(lost.error, "the device fell off the bus");
  EXPECT_EQ(lost.events.back().error_code, ErrorCode::kInternal);
  EXPECT_EQ(read_all(waiting).at(0).finish, FinishReason::kError);
  EXPECT_FALSE(engine.healthy());
  try {
    engine.submit(greedy_request({1}, 1));
    FAIL() << "submit() accepted a request";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_THAT(error.what(), HasSubstr("the device fell off the bus"));
  }
}

TEST_F(EngineTest, RefusesWhatTheQueueCantHold) {
  Gate gate(executor_);
  Engine engine(model_of(executor_), {.max_queued = 2});
  auto running = engine.submit(greedy_request({1}, 2));
  gate.await_step();
  auto second = engine.submit(greedy_request({2}, 2));
  auto third = engine.submit(greedy_request({3}, 2));
  try {
    engine.submit(greedy_request({4}, 2));
    FAIL() << "submit() accepted a request";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExhausted);
  }
  gate.open();
  EXPECT_EQ(read_all(third).at(0).tokens, greedy_answer({3}, 2));
  EXPECT_EQ(read_one(engine.submit(greedy_request({4}, 2))).tokens, greedy_answer({4}, 2));
}

// Each answer has the prompt's tokens for itself.
TEST_F(EngineTest, RefusesMorePromptsThanItHolds) {
  Gate gate(executor_);
  Engine engine(model_of(executor_), {.max_prompt_tokens = 20});
  const auto request_of = [](int prompt_size, int n) {
    GenerationRequest request = greedy_request(some_prompt(prompt_size, 1), 2);
    request.n = n;
    return request;
  };
  auto big = engine.submit(request_of(7, 3));  // The only one.
  gate.await_step();
  EXPECT_THROW(engine.submit(request_of(1, 1)), QueueFullError);
  gate.open();
  read_all(big);
  std::optional<TokenStream> first, second;
  while (!first) {  // The end is read before the engine has forgotten the request.
    try {
      first.emplace(engine.submit(request_of(4, 3)));
    } catch (const QueueFullError&) {
      std::this_thread::yield();
    }
  }
  first->next();
  second.emplace(engine.submit(request_of(2, 4)));
  read_all(*second);
}

// A prompt's last block whose logits are no numbers, once.
TEST_F(EngineTest, LogitsThatAreNoNumbersEndTheAnswerAndAreNotCached) {
  std::atomic<bool> is_broken = true;
  FakeExecutor executor(kVocabulary, kLimits, [&](std::span<const TokenId> ids) {
    auto logits = hashed_logits(ids, kVocabulary);
    if (ids[0] == 1 && is_broken) {
      std::ranges::fill(logits, std::numeric_limits<float>::quiet_NaN());
    }
    return logits;
  });
  Engine engine(model_of(executor), {.max_tokens_per_step = 8});
  auto beside = engine.submit(greedy_request({2, 3}, 20));
  std::vector<TokenId> prompt(18, 1);  // Is read in several steps.
  const Answer failed = read_one(engine.submit(greedy_request(prompt, 5)));
  EXPECT_THAT(failed.tokens, IsEmpty());
  EXPECT_EQ(failed.finish, FinishReason::kError);
  EXPECT_EQ(failed.events.back().error_code, ErrorCode::kInternal);
  EXPECT_THAT(failed.error, HasSubstr("no numbers"));
  EXPECT_EQ(read_all(beside).at(0).tokens, greedy_answer({2, 3}, 20));
  EXPECT_TRUE(engine.healthy());
  is_broken = false;
  auto again = engine.submit(greedy_request(prompt, 5));
  EXPECT_EQ(read_all(again).at(0).tokens, greedy_answer(prompt, 5));
  EXPECT_EQ(again.usage().cached_tokens, 0);
}

TEST_F(EngineTest, RefusesRequestsThatCantRunAndSaysWhy) {
  Engine engine(model_of(executor_), {});
  const auto complaint = [&](auto&& change) -> std::string {
    GenerationRequest request = greedy_request({1, 2}, 5);
    change(request);
    try {
      engine.submit(request);
      return "accepted";
    } catch (const Error& error) {
      return (error.code() == ErrorCode::kInvalidArgument ? "" : "another code ") +
             std::string(error.what());
    }
  };
  EXPECT_THAT(complaint([](auto& r) { r.prompt.clear(); }), HasSubstr("prompt: no tokens"));
  EXPECT_THAT(complaint([](auto& r) { r.prompt = {-1}; }), HasSubstr("prompt: -1"));
  EXPECT_THAT(complaint([](auto& r) { r.prompt = {kVocabulary}; }), HasSubstr("prompt: 50"));
  EXPECT_THAT(complaint([](auto& r) { r.prompt.assign(256, 1); }), HasSubstr("context of 256"));
  EXPECT_THAT(complaint([](auto& r) { r.max_tokens = -1; }), HasSubstr("max_tokens: -1"));
  EXPECT_THAT(complaint([](auto& r) { r.n = 0; }), HasSubstr("n: 0"));
  EXPECT_THAT(complaint([](auto& r) { r.n = 1000; }), HasSubstr("n: 1000"));
  EXPECT_THAT(complaint([](auto& r) { r.logprobs = 51; }), HasSubstr("logprobs: 51"));
  EXPECT_THAT(complaint([](auto& r) { r.stop_ids = {77}; }), HasSubstr("stop_ids: 77"));
  EXPECT_THAT(complaint([](auto& r) { r.stop = {""}; }), HasSubstr("stop: an empty"));
  EXPECT_THAT(complaint([](auto& r) { r.stop = {"a\xC3"}; }), HasSubstr("stop: not UTF-8"));
  EXPECT_THAT(complaint([](auto& r) { r.sampling.top_p = 2; }), HasSubstr("top_p: 2"));
  EXPECT_THAT(complaint([](auto& r) { r.sampling.logit_bias = {{50, 1}}; }), HasSubstr("bias: 50"));
  EXPECT_THAT(complaint([](auto& r) { r.stop = {"x"}; }), HasSubstr("another code stop: strings"));
}

TEST_F(EngineTest, StreamsMayOutliveTheEngine) {
  std::optional<TokenStream> running, waiting;
  {
    Gate gate(executor_);
    Engine engine(model_of(executor_), {});
    running.emplace(engine.submit(greedy_request({1}, 200)));
    gate.await_step();
    waiting.emplace(engine.submit(greedy_request({2}, 200)));
    gate.open();
  }
  EXPECT_EQ(read_all(*running).at(0).finish, FinishReason::kCancelled);
  EXPECT_EQ(read_all(*waiting).at(0).finish, FinishReason::kCancelled);
  EXPECT_EQ(waiting->next(), std::nullopt);
  waiting->cancel();
}

}  // namespace
}  // namespace trtmc
