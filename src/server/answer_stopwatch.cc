#include "server/answer_stopwatch.h"

#include <utility>

namespace trtmc {

AnswerStopwatch::AnswerStopwatch(std::shared_ptr<GenerationObserver> observer)
    : observer_(std::move(observer)), begin_(std::chrono::steady_clock::now()) {}

AnswerStopwatch::~AnswerStopwatch() {
  if (!observer_ || !started_) return;
  // Where one answer failed nobody waits for the others.
  for (; num_open_ > 0; --num_open_) observer_->ended(FinishReason::kCancelled);
  observer_->request_ended(seconds_between(begin_, std::chrono::steady_clock::now()));
}

void AnswerStopwatch::start(size_t num_choices) {
  if (!observer_) return;
  started_ = true;
  num_open_ = num_choices;
  last_tokens_.resize(num_choices);
}

void AnswerStopwatch::token(int choice) {
  if (!observer_) return;
  const SteadyTime now = std::chrono::steady_clock::now();
  auto& last = last_tokens_[static_cast<size_t>(choice)];
  if (last) observer_->next_token(seconds_between(*last, now));
  if (!std::exchange(has_token_, true)) observer_->first_token(seconds_between(begin_, now));
  last = now;
}

void AnswerStopwatch::ended(FinishReason reason) {
  if (num_open_ == 0) return;
  --num_open_;
  observer_->ended(reason);
}

}  // namespace trtmc
