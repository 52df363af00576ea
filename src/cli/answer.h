// One answer of a model, shown as it comes. Used by `run` and `chat`.
#pragma once

#include <functional>
#include <optional>

#include "cli/console.h"
#include "engine/engine.h"
#include "text/output_parser.h"
#include "trtmc/trtmc.h"

namespace trtmc {

using ShowDelta = std::function<void(const Delta& delta)>;

// Runs `request` to its end. Without a parser all text is content. Ctrl-C ends the answer with
// kCancelled and what there is so far. Throws if the engine fails.
Answer generate(Engine& engine, GenerationRequest request, std::optional<OutputParser> parser,
                const ShowDelta& show);

// Prints deltas as they come: content to standard output, reasoning dimmed to standard error, a
// tool call as a line of JSON.
class AnswerPrinter {
 public:
  explicit AnswerPrinter(Console& console) : console_(console) {}
  void show(const Delta& delta);
  void finish();  // Ends the line.

 private:
  Console& console_;
  bool in_reasoning_ = false;
  bool at_line_start_ = true;  // Of standard output.
};

}  // namespace trtmc
