// One answer of a model as it comes: the engine's events parted into content, reasoning and tool
// calls, and summed up. Used by one thread; only cancel() by any.
#pragma once

#include <optional>

#include "base/clock.h"
#include "engine/engine.h"
#include "text/output_parser.h"
#include "trtmc/trtmc.h"

namespace trtmc {

class AnswerStream {
 public:
  // Without a parser all text is content. `request` is for one answer. Throws what
  // Engine::submit throws.
  AnswerStream(Engine& engine, GenerationRequest request, std::optional<OutputParser> parser);

  // The next delta that says something, nothing at the end. Throws kInternal if the engine fails.
  std::optional<Delta> next();
  void cancel() { stream_.cancel(); }
  bool has_ended() const { return ended_; }
  const Answer& answer() const { return answer_; }

 private:
  Delta take(TokenEvent event);
  void add(OutputDelta parsed, Delta& delta);
  void finish();

  TokenStream stream_;
  std::optional<OutputParser> parser_;
  Answer answer_;
  bool ended_ = false;
  SteadyTime start_, first_, last_;  // Of the request, of the first token, of the last so far.
};

}  // namespace trtmc
