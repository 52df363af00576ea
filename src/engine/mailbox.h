// The way into an engine.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace trtmc {

class RequestRun;
struct EngineOptions;

// Everything is guarded by `mutex`. Shared, since streams may outlive the engine.
struct Mailbox {
  // Throws unless one more request of so many tokens, counted as num_prompt_tokens is, may come:
  // QueueFullError, and kInternal if the engine is not healthy.
  void check_room(const EngineOptions& options, int64_t num_tokens) const;

  std::mutex mutex;
  std::condition_variable wake;  // Of the engine's thread.
  std::vector<std::unique_ptr<RequestRun>> submitted;
  int num_queued = 0;             // Requests of which nothing has been computed yet.
  int64_t num_prompt_tokens = 0;  // Of requests that have not ended, once for each answer.
  bool cancelled = false;         // Some stream has been, since the engine last looked.
  bool stopping = false;
  std::string lost;  // Why the engine is not healthy; empty: it is.
};

}  // namespace trtmc
