// What the engine need not do again, or not alone: prefixes that are known, and guesses that are
// right. Answers are those of the plain engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "engine/engine.h"
#include "tests/support/engine_answers.h"

namespace trtmc {
namespace {

using EngineSavings = EngineTest;

TEST_F(EngineSavings, SaysHowMuchOfThePromptWasKnown) {
  Engine engine(model_of(executor_), {});
  const auto usage_of = [&](const std::vector<TokenId>& prompt, int n) {
    GenerationRequest request = greedy_request(prompt, 6);
    request.n = n;
    auto stream = engine.submit(request);
    for (const Answer& answer : read_all(stream)) {
      EXPECT_EQ(answer.tokens, greedy_answer(prompt, 6));
    }
    return stream.usage();
  };
  const auto prompt = some_prompt(21, 3);
  EXPECT_EQ(usage_of(prompt, 1).cached_tokens, 0);
  const int num_tokens = executor_.num_tokens();
  EXPECT_EQ(usage_of(prompt, 1).cached_tokens, 20);  // Five blocks of 4.
  EXPECT_EQ(executor_.num_tokens() - num_tokens, 1 + 5);
  EXPECT_EQ(usage_of(prompt, 3).cached_tokens, 20);  // Of the prompt, not of each choice.
  auto longer = prompt;
  for (const TokenId token : greedy_answer(prompt, 6)) longer.push_back(token);
  longer.push_back(1);
  EXPECT_EQ(usage_of(longer, 1).cached_tokens, 24);  // 26 tokens were computed.
}

TEST_F(EngineSavings, WithoutThePrefixCacheEverythingIsComputed) {
  Engine engine(model_of(executor_), {.prefix_cache = false});
  for (int i = 1; i <= 2; ++i) {
    auto stream = engine.submit(greedy_request(some_prompt(21, 3), 6));
    read_all(stream);
    EXPECT_EQ(stream.usage().cached_tokens, 0);
    EXPECT_EQ(executor_.num_tokens(), i * (21 + 5));
  }
}

// What repeats is said in fewer steps, and everything about it is as it was.
TEST_F(EngineSavings, SpeculationChangesStepsAndNothingElse) {
  // Goes round through nine tokens; where it is drawn, now and then elsewhere.
  const LogitsFunction round = [](std::span<const TokenId> ids) {
    std::vector<float> logits = hashed_logits(ids, kVocabulary);
    logits[static_cast<size_t>((ids.back() + 1) % 9)] += 9;
    return logits;
  };
  for (const double temperature : {0.0, 0.8}) {
    std::vector<Answer> answers;
    std::vector<int> steps;
    for (const bool speculate : {false, true}) {
      FakeExecutor executor(kVocabulary, kLimits, round);
      Engine engine(model_of(executor), {.speculate = speculate});
      GenerationRequest request = greedy_request({0, 1, 2, 3}, 120);
      request.sampling.temperature = temperature;
      request.sampling.frequency_penalty = 0.02;
      request.sampling.repetition_penalty = 1.01;
      request.logprobs = 2;
      answers.push_back(read_one(engine.submit(request)));
      steps.push_back(executor.num_steps());
    }
    EXPECT_EQ(answers[0].tokens, answers[1].tokens);
    for (size_t i = 0; i < answers[0].events.size(); ++i) {
      EXPECT_EQ(answers[0].events[i].logprob, answers[1].events[i].logprob);
      EXPECT_EQ(answers[0].events[i].top[1].logprob, answers[1].events[i].top[1].logprob);
    }
    EXPECT_EQ(steps[0], 120);
    EXPECT_LT(steps[1], 80);
  }
}

TEST_F(EngineSavings, AStopIdAmongTheDraftsEndsTheAnswer) {
  std::vector<TokenId> script;
  for (int i = 0; i < 30; ++i) script.insert(script.end(), {10, 11, 12, 13});
  script[81] = 40;
  FakeExecutor executor(kVocabulary, kLimits, scripted(2, script, kVocabulary));
  Engine engine(model_of(executor), {.speculate = true});
  GenerationRequest request = greedy_request({1, 2}, 120);
  request.stop_ids = {40};
  const Answer answer = read_one(engine.submit(request));
  EXPECT_EQ(answer.tokens, std::vector<TokenId>(script.begin(), script.begin() + 81));
  EXPECT_EQ(answer.finish, FinishReason::kStop);
  EXPECT_LT(executor.num_steps(), 40);
}

TEST_F(EngineSavings, GuessesThatDoNotComeTrueCostLittle) {
  Engine engine(model_of(executor_), {.speculate = true});
  const auto prompt = std::vector<TokenId>(40, 7);  // Repeats; the answer does not.
  EXPECT_EQ(read_one(engine.submit(greedy_request(prompt, 150))).tokens,
            greedy_answer(prompt, 150));
  EXPECT_LT(executor_.num_tokens(), 40 + 149 + 15);
}

// A device that works behind the host: it begins when it likes and reads the batch until wait().
class DeviceBehind final : public Executor {
 public:
  explicit DeviceBehind(FakeExecutor& device) : device_(device) {}
  Limits limits() const override { return device_.limits(); }
  MemoryUse memory() const override { return device_.memory(); }
  void submit(const StepBatch& batch) override {
    thread_ = std::thread([this, &batch] {
      std::this_thread::yield();
      device_.submit(batch);
    });
  }
  const Logits& wait() override {
    thread_.join();
    return device_.wait();
  }
  void copy_block(BlockId from, BlockId to) override { device_.copy_block(from, to); }
  std::string description() const override { return "behind"; }

 private:
  FakeExecutor& device_;
  std::thread thread_;
};

TEST_F(EngineSavings, WorksWithADeviceBehindTheHost) {
  DeviceBehind behind(executor_);
  EngineModel model = model_of(executor_);
  model.executor = &behind;
  Engine engine(model, {.speculate = true});
  std::vector<TokenStream> streams;
  for (int i = 0; i < 10; ++i) {
    GenerationRequest request = greedy_request(some_prompt(13 + i, i / 2), 20);
    request.n = 1 + i % 2;
    streams.push_back(engine.submit(std::move(request)));
  }
  streams[3].cancel();
  for (int i = 0; i < 10; ++i) {
    const auto answers = read_all(streams[static_cast<size_t>(i)]);
    if (i == 3) continue;
    for (const Answer& answer : answers) {
      EXPECT_EQ(answer.tokens, greedy_answer(some_prompt(13 + i, i / 2), 20));
    }
  }
}

}  // namespace
}  // namespace trtmc
