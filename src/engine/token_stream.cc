#include "engine/token_stream.h"

#include <utility>

#include "engine/request_run.h"
#include "engine/shared_stream.h"

namespace trtmc {

void TokenStream::Shared::push(TokenEvent event) {
  {
    const std::lock_guard lock(mutex);
    const int still_open = open_choices - (event.finish ? 1 : 0);
    const int num_tokens = event.token >= 0 ? 1 : 0;
    const bool had_none = events.empty();
    events.push(std::move(event), still_open);
    open_choices = still_open;
    usage.completion_tokens += num_tokens;
    wake.notify_one();
    if (!had_none) return;
  }
  if (wake_reader) wake_reader();
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
  return shared_->events.pop();
}

std::optional<TokenEvent> TokenStream::poll() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->events.empty()) return std::nullopt;
  return shared_->events.pop();
}

bool TokenStream::has_ended() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->events.empty() && shared_->open_choices == 0;
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
