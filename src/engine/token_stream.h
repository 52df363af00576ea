// The answers to one request, token by token, as whoever submitted it reads them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "engine/generation.h"
#include "trtmc/values.h"

namespace trtmc {

struct PromptScores {
  std::vector<TokenScore> tokens;  // [prompt - 1]: of prompt token i + 1 given those before it.
};

// One request's end of the event queue. Used by one thread. Cancels the request when it dies early.
// May outlive its engine.
class TokenStream {
 public:
  ~TokenStream();
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) = delete;

  // The next event, waiting for it; nothing once every choice has finished.
  std::optional<TokenEvent> next();
  // The next event if one has come, without waiting.
  std::optional<TokenEvent> poll();
  bool has_ended() const;                     // Every choice has, and all events have been read.
  void cancel();                              // From any thread; the stream ends with kCancelled.
  Usage usage() const;                        // So far.
  const PromptScores& prompt_scores() const;  // Filled before the first event, if asked for.

  struct Shared;  // The engine's own.
  explicit TokenStream(std::shared_ptr<Shared> shared);

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace trtmc
