// A model's text, in any pieces, to reasoning, content and tool calls. Every split of the same text
// gives the same result; what is malformed comes back as content, byte for byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/output_markers.h"

namespace trtmc {

struct ToolCall {
  std::string name;
  std::string arguments;  // The model's own JSON text; "{}" if it gave none.
  bool operator==(const ToolCall&) const = default;
};

// What one append() adds.
struct OutputDelta {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> tool_calls;  // Whole calls, when their closing marker has come.
};

class OutputParser {
 public:
  // Where the text starts, which the rendered prompt decides and nobody guesses.
  enum class Start {
    kTurn,       // A fresh turn: an opening think marker as the first thing opens reasoning.
    kReasoning,  // The prompt ended inside the think brackets.
    kContent,    // The prompt closed them: everything is content and calls.
  };

  // With parse_tools false, tool markers are content.
  OutputParser(OutputMarkers markers, Start start, bool parse_tools);

  OutputDelta append(std::string_view text);
  OutputDelta finish();

  // The start state for a prompt that ends thus.
  static Start start_for_prompt(const OutputMarkers& markers, std::string_view prompt);

 private:
  enum class State { kStart, kReasoning, kAfterReasoning, kContent, kTool };

  void consume(OutputDelta& delta, bool at_end);

  OutputMarkers markers_;
  bool parse_tools_;
  State state_;
  std::string held_;  // Text whose meaning is not certain yet.
};

}  // namespace trtmc
