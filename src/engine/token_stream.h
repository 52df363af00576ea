// What the engine's thread and a request's reader share: one queue of events, and the way to wake
// the engine up.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace trtmc {

class RequestRun;

// The way in. Everything is guarded by `mutex`. Shared, since streams may outlive the engine.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable wake;  // Of the engine's thread.
  std::vector<std::unique_ptr<RequestRun>> submitted;
  int num_queued = 0;      // Requests of which nothing has been computed yet.
  bool cancelled = false;  // Some stream has been, since the engine last looked.
  bool stopping = false;
  std::string lost;  // Why the engine is not healthy; empty: it is.
};

// First in, first out. Room that has been made is used again, so that a reader who keeps up costs
// no allocations.
class EventQueue {
 public:
  // With room for `num_events`.
  explicit EventQueue(int num_events);

  bool empty() const { return size_ == 0; }
  // Afterwards there is room for `num_more` more, and those need no memory. Without memory it
  // throws, and nothing has changed.
  void push(TokenEvent&& event, int num_more);
  TokenEvent pop();

 private:
  size_t wrapped(size_t index) const { return index & (events_.size() - 1); }

  std::vector<TokenEvent> events_;  // A ring; a power of two.
  size_t first_ = 0, size_ = 0;
};

// The way out. The engine's thread writes, the reader reads; `mutex` guards all but `is_cancelled`.
struct TokenStream::Shared {
  Shared(std::shared_ptr<Mailbox> mailbox_of_engine, int num_choices, int prompt_tokens,
         std::function<void()> wake_poller)
      : mailbox(std::move(mailbox_of_engine)),
        wake_reader(std::move(wake_poller)),
        events(num_choices),
        open_choices(num_choices),
        usage{.prompt_tokens = prompt_tokens} {}

  // Counts the choice's end and the token, then wakes the reader. Needs memory now and then, but
  // never for the last event of a choice; without memory it throws, and nothing has changed.
  void push(TokenEvent event);

  const std::shared_ptr<Mailbox> mailbox;
  const std::function<void()> wake_reader;  // May be empty.
  std::atomic<bool> is_cancelled = false;

  std::mutex mutex;
  std::condition_variable wake;  // Of the reader.
  EventQueue events;
  int open_choices;  // Without their last event in the queue.
  Usage usage;
  PromptScores prompt_scores;  // Complete before the first event.
};

}  // namespace trtmc
