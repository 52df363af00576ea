// One answer as its events come: parted into content, reasoning and tool calls, and summed up.
#pragma once

#include <optional>

#include "base/clock.h"
#include "engine/generation.h"
#include "text/output_parser.h"
#include "trtmc/trtmc.h"

namespace trtmc {

class AnswerBuilder {
 public:
  // Without a parser all text is content. What else was likely is left out of the answer's tokens
  // unless `keeps_top`: it is large, and the deltas have it.
  explicit AnswerBuilder(std::optional<OutputParser> parser, bool keeps_top = true);

  // What the event adds. An event of an error adds nothing.
  Delta take(TokenEvent event);
  // After the last event: what was held back.
  Delta finish();

  const Answer& answer() const { return answer_; }
  Answer& answer() { return answer_; }

 private:
  void add(OutputDelta parsed, Delta& delta);

  std::optional<OutputParser> parser_;
  const bool keeps_top_;
  Answer answer_;
  SteadyTime start_, first_, last_;  // Of the request, of the first token, of the last so far.
};

}  // namespace trtmc
