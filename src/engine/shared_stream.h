// What the engine's thread and a request's reader share: the way out.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/event_queue.h"
#include "engine/mailbox.h"
#include "engine/token_stream.h"

namespace trtmc {

// The engine's thread writes, the reader reads; `mutex` guards all but `is_cancelled`.
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
