// How long the answers to one request take, told to whoever observes the model.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "server/generation_observer.h"

namespace trtmc {

class AnswerStopwatch {
 public:
  // Without an observer it does nothing.
  explicit AnswerStopwatch(std::shared_ptr<GenerationObserver> observer);
  ~AnswerStopwatch();  // The request has ended, if it had been started, and all its answers have.
  AnswerStopwatch(const AnswerStopwatch&) = delete;

  // The request has been submitted, for so many answers. The clock runs since the construction.
  void start(size_t num_choices);
  void token(int choice);           // The answer has one more.
  void ended(FinishReason reason);  // One of the answers; nothing once all of them have.

 private:
  const std::shared_ptr<GenerationObserver> observer_;
  const SteadyTime begin_;
  bool started_ = false, has_token_ = false;
  size_t num_open_ = 0;                                 // Answers that have not ended.
  std::vector<std::optional<SteadyTime>> last_tokens_;  // [choice]
};

}  // namespace trtmc
