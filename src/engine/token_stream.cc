#include "engine/token_stream.h"

#include <utility>

#include "engine/request_run.h"

namespace trtmc {

void TokenStream::Shared::push(TokenEvent event) {
  const std::lock_guard lock(mutex);
  if (event.token >= 0) ++usage.completion_tokens;
  if (event.finish) --open_choices;
  events.push_back(std::move(event));
  wake.notify_one();
}

TokenStream::TokenStream(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

TokenStream::TokenStream(TokenStream&&) noexcept = default;

TokenStream::~TokenStream() {
  if (shared_) cancel();
}

std::optional<TokenEvent> TokenStream::next() {
  std::unique_lock lock(shared_->mutex);
  shared_->wake.wait(lock, [&] { return !shared_->events.empty() || shared_->open_choices == 0; });
  if (shared_->events.empty()) return std::nullopt;
  TokenEvent event = std::move(shared_->events.front());
  shared_->events.pop_front();
  return event;
}

void TokenStream::cancel() {
  shared_->is_cancelled = true;
  Mailbox& mailbox = *shared_->mailbox;
  const std::lock_guard lock(mailbox.mutex);
  mailbox.cancelled = true;
  mailbox.wake.notify_one();
}

Usage TokenStream::usage() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->usage;
}

const PromptScores& TokenStream::prompt_scores() const { return shared_->prompt_scores; }

}  // namespace trtmc
