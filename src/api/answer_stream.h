// One answer of a model as it comes: the engine's events, waited for and made into deltas. Used by
// one thread; only cancel() by any.
#pragma once

#include <optional>

#include "api/answer_builder.h"
#include "engine/engine.h"

namespace trtmc {

class AnswerStream {
 public:
  // Without a parser all text is content. `request` is for one answer. Throws what
  // Engine::submit throws.
  AnswerStream(Engine& engine, GenerationRequest request, std::optional<OutputParser> parser);

  // The next delta that says something, nothing at the end. Throws the engine's error if it fails.
  std::optional<Delta> next();
  void cancel() { stream_.cancel(); }
  bool has_ended() const { return ended_; }
  const Answer& answer() const { return builder_.answer(); }

 private:
  AnswerBuilder builder_;
  TokenStream stream_;
  bool ended_ = false;
};

}  // namespace trtmc
