// One answer of a model: from the prompt's ids to content, reasoning and tool calls, shown as they
// come. Used by `run` and `chat`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/console.h"
#include "cli/options.h"
#include "engine/engine.h"
#include "text/output_parser.h"

namespace trtmc {

struct Answer {
  std::string content;
  std::string reasoning;
  std::vector<ToolCall> tool_calls;
  std::vector<TokenEvent> tokens;  // Every generated token; their texts are in `content`.
  FinishReason finish = FinishReason::kStop;
  Usage usage;
  double prefill_ms = 0;  // From the request to the first token.
  double decode_ms = 0;   // From the first token to the last.
};

using ShowDelta = std::function<void(const OutputDelta& delta)>;

// Runs `request` to its end. Without a parser all text is content. Ctrl-C ends the answer with
// kCancelled and what there is so far. Throws if the engine fails.
Answer generate(Engine& engine, GenerationRequest request, std::optional<OutputParser> parser,
                const ShowDelta& show);

// The request for `prompt`: sampling as the options say, else the bundle, else built in; the
// bundle's stop ids. Logs once what applies and where it comes from.
GenerationRequest make_request(const Manifest& manifest, const SamplingOptions& options,
                               std::vector<TokenId> prompt);

// Prints deltas as they come: content to standard output, reasoning dimmed to standard error, a
// tool call as a line of JSON.
class AnswerPrinter {
 public:
  explicit AnswerPrinter(Console& console) : console_(console) {}
  void show(const OutputDelta& delta);
  void finish();  // Ends the line.

 private:
  Console& console_;
  bool in_reasoning_ = false;
  bool at_line_start_ = true;  // Of standard output.
};

// {"name": …, "arguments": {…}}; arguments that are no JSON stand as a string.
Json to_json(const ToolCall& call);

}  // namespace trtmc
