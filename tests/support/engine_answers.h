// What the tests of the engine share: requests to a fake executor and their answers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "engine/engine.h"
#include "tests/support/fake_executor.h"

namespace trtmc {

inline constexpr int kVocabulary = 50;
inline constexpr Limits kLimits = {
    .num_blocks = 64, .block_size = 4, .max_tokens_per_step = 32, .max_sequences_per_step = 8};

struct Answer {
  std::vector<TokenId> tokens;
  std::string text, error;
  std::optional<FinishReason> finish;
  std::vector<TokenEvent> events;
};

// Every choice's answer, to the end of the stream.
inline std::vector<Answer> read_all(TokenStream& stream) {
  std::vector<Answer> answers;
  while (auto event = stream.next()) {
    if (event->choice >= answers.size()) answers.resize(event->choice + 1);
    Answer& answer = answers[event->choice];
    EXPECT_FALSE(answer.finish) << "an event after the last";
    if (event->token >= 0) answer.tokens.push_back(event->token);
    answer.text += event->text;
    answer.error += event->error;
    answer.finish = event->finish;
    answer.events.push_back(std::move(*event));
  }
  for (const Answer& answer : answers) EXPECT_TRUE(answer.finish);
  return answers;
}

inline Answer read_one(TokenStream stream) {
  auto answers = read_all(stream);
  EXPECT_EQ(answers.size(), 1u);
  return answers.at(0);
}

inline std::vector<TokenId> greedy_answer(std::vector<TokenId> ids, int count) {
  std::vector<TokenId> answer;
  for (int i = 0; i < count; ++i) {
    const auto logits = hashed_logits(ids, kVocabulary);
    ids.push_back(static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin()));
    answer.push_back(ids.back());
  }
  return answer;
}

inline GenerationRequest greedy_request(std::vector<TokenId> prompt, int max_tokens) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.max_tokens = max_tokens;
  return request;
}

inline std::vector<TokenId> some_prompt(int size, int seed) {
  std::vector<TokenId> prompt;
  for (int i = 0; i < size; ++i) prompt.push_back((seed * 31 + i * i * 7 + i) % kVocabulary);
  return prompt;
}

// Answers with `script`, token by token, to a prompt of `prompt_size`.
inline LogitsFunction scripted(size_t prompt_size, std::vector<TokenId> script, int vocab_size) {
  return [=](std::span<const TokenId> ids) {
    std::vector<float> logits(static_cast<size_t>(vocab_size));
    const size_t next = ids.size() - std::min(ids.size(), prompt_size);
    if (next < script.size()) logits[static_cast<size_t>(script[next])] = 20;
    return logits;
  };
}

// Holds the engine within a step.
class Gate {
 public:
  explicit Gate(FakeExecutor& executor) {
    executor.during_step = [this](int) {
      std::unique_lock lock(mutex_);
      ++arrived_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return open_; });
    };
  }
  void await_step() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ > 0; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

class EngineTest : public testing::Test {
 protected:
  // The tests of failures would otherwise print them.
  EngineTest() {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~EngineTest() override { set_log_sink({}); }

  static EngineModel model_of(FakeExecutor& executor, int vocab_size = kVocabulary) {
    const Limits limits = executor.limits();
    return {.executor = &executor,
            .tokenizer = nullptr,
            .vocab_size = vocab_size,
            .context_length = limits.num_blocks * limits.block_size};
  }

  FakeExecutor executor_{kVocabulary, kLimits};
};

}  // namespace trtmc
