#include "text/output_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "text/partial_match.h"

namespace trtmc {
namespace {

// The length without white space at the end. The first `blank` bytes are known to be nothing else.
size_t trimmed_size(std::string_view text, size_t blank = 0) {
  const size_t last = text.substr(blank).find_last_not_of(kJsonSpace);
  return last == text.npos ? 0 : blank + last + 1;
}

// The end of the value at `i` of text that is known to be JSON.
size_t value_end(std::string_view json, size_t i) {
  if (json[i] == '"' || json[i] == '{' || json[i] == '[') {
    JsonEndScan value;
    value.scan(json.substr(i));
    return i + value.end();
  }
  return json.find_first_of(",}] \t\r\n", i);
}

// The text of the member `key` of an object that is known to be JSON: of equal keys the last, as
// JSON readers take it.
std::optional<std::string_view> member_text(std::string_view object, std::string_view key) {
  std::optional<std::string_view> found;
  size_t i = skip_space(object, 1);
  while (object[i] == '"') {
    const size_t key_end = value_end(object, i);
    const Json name = Json::parse(object.substr(i, key_end - i));
    const size_t start = skip_space(object, skip_space(object, key_end) + 1);
    const size_t end = value_end(object, start);
    if (*name.string() == key) found = object.substr(start, end - start);
    i = skip_space(object, end);
    if (object[i] == ',') i = skip_space(object, i + 1);
  }
  return found;
}

std::optional<Json> parse_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<ToolCall> read_call(std::string_view object) {
  const auto json = parse_json(object);
  if (!json || !json->object()) return std::nullopt;
  const Json* name = json->find("name");
  if (!name || !name->string() || name->string()->empty()) return std::nullopt;
  const Json* arguments = json->find("arguments");
  if (!arguments || arguments->is_null()) return ToolCall{*name->string(), "{}"};
  if (arguments->string()) return ToolCall{*name->string(), *arguments->string()};
  if (!arguments->object()) return std::nullopt;
  return ToolCall{*name->string(), std::string(*member_text(object, "arguments"))};
}

}  // namespace

OutputParser::OutputParser(OutputMarkers markers, Start start, bool parse_tools)
    : markers_(std::move(markers)), parse_tools_(parse_tools), state_(State::kContent) {
  parse_tools_ &= !markers_.tool_open.empty() && !markers_.tool_close.empty();
  if (markers_.think_open.empty() || markers_.think_close.empty()) return;
  if (start == Start::kTurn) state_ = State::kStart;
  if (start == Start::kReasoning) state_ = State::kReasoningStart;
}

OutputParser::Start OutputParser::start_for_prompt(const OutputMarkers& markers,
                                                   std::string_view prompt) {
  if (markers.think_open.empty() || markers.think_close.empty()) return Start::kTurn;
  prompt = prompt.substr(0, trimmed_size(prompt));
  if (prompt.ends_with(markers.think_close)) return Start::kContent;
  if (prompt.ends_with(markers.think_open)) return Start::kReasoning;
  return Start::kTurn;
}

OutputDelta OutputParser::append(std::string_view text) {
  held_ += text;
  OutputDelta delta;
  consume(delta, false);
  return delta;
}

OutputDelta OutputParser::finish() {
  OutputDelta delta;
  consume(delta, true);
  return delta;
}

void OutputParser::consume(OutputDelta& delta, bool at_end) {
  for (bool more = true; more;) {
    switch (state_) {
      case State::kStart:
        more = leave_start(at_end);
        break;
      case State::kReasoningStart:
        more = leave_reasoning_start(at_end);
        break;
      case State::kReasoning:
        more = take_reasoning(delta, at_end);
        break;
      case State::kAfterReasoning:
        more = leave_after_reasoning();
        break;
      case State::kContent:
        more = take_content(delta, at_end);
        break;
      case State::kTool:
        more = take_tool_call(delta, at_end);
        break;
    }
  }
}

std::string OutputParser::take(size_t count) {
  blank_ -= std::min(blank_, count);
  std::string text = held_.substr(0, count);
  held_.erase(0, count);
  return text;
}

bool OutputParser::leave_start(bool at_end) {
  const size_t start = blank_ = skip_space(held_, blank_);
  const std::string_view text = std::string_view(held_).substr(start);
  if (text.starts_with(markers_.think_open)) {
    take(start + markers_.think_open.size());
    state_ = State::kReasoningStart;
    return true;
  }
  if (!at_end && markers_.think_open.starts_with(text)) return false;
  state_ = State::kContent;
  return true;
}

bool OutputParser::leave_reasoning_start(bool at_end) {
  if (held_.empty() && !at_end) return false;
  if (held_.starts_with('\n')) take(1);
  state_ = State::kReasoning;
  return true;
}

bool OutputParser::take_reasoning(OutputDelta& delta, bool at_end) {
  const size_t close = held_.find(markers_.think_close);
  if (close == std::string::npos) {
    size_t held = 0;
    if (!at_end) {
      held = std::max(partial_match_tail(held_, markers_.think_close),
                      partial_match_tail(held_, "\n" + markers_.think_close));
    }
    delta.reasoning += take(held_.size() - held);
    return false;
  }
  delta.reasoning += take(close > 0 && held_[close - 1] == '\n' ? close - 1 : close);
  take(held_.find(markers_.think_close) + markers_.think_close.size());
  state_ = State::kAfterReasoning;
  return true;
}

bool OutputParser::leave_after_reasoning() {
  take(std::min(held_.find_first_not_of('\n'), held_.size()));
  if (held_.empty()) return false;
  state_ = State::kContent;
  return true;
}

bool OutputParser::take_content(OutputDelta& delta, bool at_end) {
  if (after_call_) {
    take(skip_space(held_, 0));
    after_call_ = held_.empty();
  }
  if (!parse_tools_) {
    delta.content += take(held_.size());
    return false;
  }
  const size_t open =
      held_.find(markers_.tool_open, blank_ - std::min(blank_, markers_.tool_open.size()));
  if (open == std::string::npos && at_end) {
    delta.content += take(held_.size());
    return false;
  }
  // White space before a call, and before what may become one, waits for what it is.
  const std::string_view text = held_;
  const size_t before =
      open != std::string::npos ? open : text.size() - partial_match_tail(text, markers_.tool_open);
  const size_t content = trimmed_size(text.substr(0, before), std::min(blank_, before));
  delta.content += take(content);
  blank_ = before - content;
  if (open == std::string::npos) return false;
  state_ = State::kTool;
  call_ = ToolCallScan();
  return true;
}

bool OutputParser::take_tool_call(OutputDelta& delta, bool at_end) {
  const size_t body = blank_ + markers_.tool_open.size();
  const std::string_view text = std::string_view(held_).substr(body);
  const ToolCallScan::Result result = call_.scan(text, markers_.tool_close);
  if (result == ToolCallScan::Result::kOpen && !at_end) return false;
  state_ = State::kContent;
  std::optional<ToolCall> call;
  if (result == ToolCallScan::Result::kDone) call = read_call(call_.object(text));
  if (call) {
    take(body + call_.end());
    delta.tool_calls.push_back(std::move(*call));
    after_call_ = true;
  } else {
    delta.content += take(body);
  }
  return true;
}

}  // namespace trtmc
