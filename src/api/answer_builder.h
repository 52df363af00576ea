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
  // Without a parser all text is content.
  explicit AnswerBuilder(std::optional<OutputParser> parser);

  // What the event adds. An event of an error adds nothing.
  Delta take(TokenEvent event);
  // After the last event: what was held back.
  Delta finish();

  const Answer& answer() const { return answer_; }
  Answer& answer() { return answer_; }

 private:
  void add(OutputDelta parsed, Delta& delta);

  std::optional<OutputParser> parser_;
  Answer answer_;
  SteadyTime start_, first_, last_;  // Of the request, of the first token, of the last so far.
};

}  // namespace trtmc
