// The texts with which a model brackets its reasoning and its tool calls, as data. Empty: it has
// none.
#pragma once

#include <string>

namespace trtmc {

struct OutputMarkers {
  std::string think_open, think_close;  // "<think>", "</think>"
  std::string tool_open, tool_close;    // "<tool_call>", "</tool_call>" around a JSON object
  bool operator==(const OutputMarkers&) const = default;
};

}  // namespace trtmc
