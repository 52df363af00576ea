// A model's text, in any pieces, to reasoning, content and tool calls. Every split of the same text
// gives the same result; what is malformed comes back as content, byte for byte.
//
// Reasoning is what stands between the think markers that open a turn; one newline after the
// opening marker, one before the closing marker and all newlines after it belong to the markers, as
// SmolLM3 writes them and its template drops them. White space before the opening marker is dropped
// with it. Without a closing marker all of the rest is reasoning. Think markers elsewhere are
// content; tool calls within reasoning are reasoning.
//
// A tool call is a JSON object {"name": string, "arguments": object or string} between the tool
// markers, with white space around it and other keys allowed. Its end is where the object ends, so
// a closing marker within a JSON string is part of the string. White space next to a call is
// dropped, all other text is content. As soon as what follows an opening marker can't become a
// call, the marker is content and reading goes on after it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/output_markers.h"
#include "text/tool_call_scan.h"
#include "trtmc/values.h"

namespace trtmc {

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

  // Nothing has been read yet that says whether the turn opens with reasoning.
  bool at_start() const { return state_ == State::kStart; }
  // The opening think marker has been read, the closing one has not.
  bool in_reasoning() const {
    return state_ == State::kReasoningStart || state_ == State::kReasoning;
  }

  // The start state for a prompt that ends thus: with a think marker and perhaps white space after
  // it. Markers further up may be a user's words and say nothing.
  static Start start_for_prompt(const OutputMarkers& markers, std::string_view prompt);

 private:
  enum class State { kStart, kReasoningStart, kReasoning, kAfterReasoning, kContent, kTool };

  void consume(OutputDelta& delta, bool at_end);
  // Each takes what is certain from held_ and is true if another state is to go on with the rest.
  bool leave_start(bool at_end);
  bool leave_reasoning_start(bool at_end);
  bool take_reasoning(OutputDelta& delta, bool at_end);
  bool leave_after_reasoning();
  bool take_content(OutputDelta& delta, bool at_end);
  bool take_tool_call(OutputDelta& delta, bool at_end);
  std::string take(size_t count);  // The first bytes of held_.

  OutputMarkers markers_;
  bool parse_tools_;
  State state_;
  bool after_call_ = false;  // White space at the start of held_ touches a call.
  std::string held_;         // Text whose meaning is not certain yet.
  size_t blank_ = 0;         // Bytes at the start of held_ that are known to be white space.
  ToolCallScan call_;        // Of kTool: of what follows the marker behind that white space.
};

}  // namespace trtmc
