// Runs generation requests on one executor: one loop thread owns every sequence, requests come in
// and events go out through one queue each.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/engine_stats.h"
#include "engine/generation.h"
#include "engine/loaded_model.h"

namespace trtmc {

struct EngineOptions {
  int max_queued = 256;           // Waiting requests; beyond it submit() throws QueueFullError.
  int max_tokens_per_step = 512;  // A step's token budget, prompts and answers together.
  bool prefix_cache = true;       // Keeps what has been computed until its memory is needed.
  bool speculate = false;         // Guesses tokens that repeat; answers stay as they are.
#ifdef NDEBUG
  bool checks_invariants = false;  // After every step.
#else
  bool checks_invariants = true;
#endif
};

// Too many requests wait already: a kExhausted that will pass.
class QueueFullError : public Error {
 public:
  explicit QueueFullError(int num_waiting);
};

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

class Engine {
 public:
  // The model must outlive the engine, which alone uses its executor while it lives.
  Engine(const LoadedModel& model, const EngineOptions& options);
  Engine(const EngineModel& model, const EngineOptions& options);
  ~Engine();  // Cancels what still runs.

  // From any thread. Throws kInvalidArgument for a request that can't be run (an empty prompt, an
  // id out of range, longer than the context), kUnsupported for stop strings without a tokenizer,
  // QueueFullError, kInternal when the engine is not healthy, and std::bad_alloc.
  //
  // `wake`, if any, is called whenever an event has come to a stream that had none, for readers
  // who poll(): by the engine's thread, so it must be quick, and must neither throw nor call the
  // engine or the stream. It may be called until the stream's last event has come.
  TokenStream submit(GenerationRequest request, std::function<void()> wake = {});

  // False once a step has failed with kInternal or with what is no Error: nothing is known of the
  // device any more, everything that ran has ended with kError, and submit() refuses. A step that
  // fails otherwise ends the sequences that were in it, and the next ones run; so does a request
  // that finds no memory end alone.
  bool healthy() const;

  // As it was after the last step, and those who wait now. From any thread.
  EngineStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trtmc
