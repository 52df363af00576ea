// Requests that find no memory, wherever in the engine's way with them that is.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/engine.h"
#include "tests/faults/failing_memory.h"
#include "tests/support/engine_answers.h"

namespace trtmc {
namespace {

using Which = FailingMemory::Which;

class EngineMemory : public EngineTest, public testing::WithParamInterface<Which> {
 protected:
  // All that costs memory: choices, scores, logprobs, counts for penalties, several blocks.
  static GenerationRequest wish() {
    GenerationRequest request = greedy_request(some_prompt(6, 1), 4);
    request.n = 2;
    request.logprobs = 2;
    request.echo_logprobs = true;
    request.sampling.presence_penalty = 0.5f;
    return request;
  }

  static std::vector<Answer> answers_of(Engine& engine, GenerationRequest request) {
    auto stream = engine.submit(std::move(request));
    const SparedThread spared;
    return read_all(stream);
  }

  static void expect_right(const std::vector<Answer>& answers, const std::vector<Answer>& right) {
    for (size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].finish == FinishReason::kError) {
        EXPECT_EQ(answers[i].error, kOutOfMemory);
        EXPECT_EQ(answers[i].events.back().error_code, ErrorCode::kExhausted);
      } else {
        EXPECT_EQ(answers[i].tokens, right[i].tokens);
      }
    }
  }

  static void await_nothing_held(const Engine& engine) {
    const auto is_held = [&] {
      const EngineStats stats = engine.stats();
      return stats.kv_blocks_used + stats.running_sequences + stats.queued_requests > 0;
    };
    for (int i = 0; i < 10'000 && is_held(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    EXPECT_FALSE(is_held());
  }

  // False if there was memory for all.
  bool try_without(int64_t first, const std::vector<Answer>& right) {
    FakeExecutor executor(kVocabulary, kLimits);
    Engine engine(model_of(executor), {.speculate = true});
    GenerationRequest request = wish();
    Answer beside;
    beside.tokens = greedy_answer({1, 2, 1, 2, 1, 2}, 8);
    auto companion = engine.submit(greedy_request({1, 2, 1, 2, 1, 2}, 8));
    bool has_failed = false;
    {
      const FailingMemory memory(first, GetParam());
      try {
        expect_right(answers_of(engine, std::move(request)), right);
      } catch (const std::bad_alloc&) {  // Refused.
      }
      has_failed = memory.has_failed();
    }
    expect_right(read_all(companion), {beside});
    EXPECT_TRUE(engine.healthy());
    expect_right(answers_of(engine, wish()), right);
    await_nothing_held(engine);
    return has_failed;
  }
};

TEST_P(EngineMemory, ARequestThatFindsNoneEndsAloneWhereverThatIs) {
  std::vector<Answer> right;
  {
    Engine engine(model_of(executor_), {});
    right = answers_of(engine, wish());
  }
  int64_t first = 0;
  while (try_without(first, right) && !HasFailure()) ++first;
  EXPECT_GT(first, 200) << "few allocations were met";
}

INSTANTIATE_TEST_SUITE_P(, EngineMemory, testing::Values(Which::kOne, Which::kAllFrom),
                         [](const auto& which) {
                           return which.param == Which::kOne ? "One" : "AllFrom";
                         });

}  // namespace
}  // namespace trtmc
