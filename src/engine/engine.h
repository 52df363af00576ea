// Runs generation requests on one executor: one loop thread owns every sequence, requests come in
// and events go out through one queue each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/engine_stats.h"
#include "engine/generation.h"
#include "engine/loaded_model.h"
#include "engine/token_stream.h"

namespace trtmc {

struct EngineOptions {
  int max_queued = 256;  // Waiting requests; beyond it submit() throws QueueFullError.
  // Tokens of the prompts of all requests that have not ended, once for each answer: each answer
  // has its own. Beyond it the same, unless the request is the only one.
  int64_t max_prompt_tokens = int64_t{1} << 25;
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
  explicit QueueFullError(const std::string& message);
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
