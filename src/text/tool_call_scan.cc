#include "text/tool_call_scan.h"

#include <algorithm>

namespace trtmc {
namespace {

bool may_stand_outside_strings(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("{}[]:,+-. \t\r\n").find(c) != std::string_view::npos;
}

}  // namespace

JsonEndScan::Result JsonEndScan::scan(std::string_view text) {
  while (at_ < text.size()) {
    if (in_string_) {
      const Result string = scan_string(text);
      if (string != Result::kDone || depth_ == 0) return string;
      continue;
    }
    const char c = text[at_];
    if (c != '"' && !may_stand_outside_strings(c)) return Result::kMalformed;
    ++at_;
    if (c == '"') in_string_ = true;
    if (c == '{' || c == '[') ++depth_;
    if ((c == '}' || c == ']') && --depth_ == 0) return Result::kDone;
  }
  return Result::kOpen;
}

// Up to the closing quote and over it.
JsonEndScan::Result JsonEndScan::scan_string(std::string_view text) {
  for (; at_ < text.size(); ++at_) {
    const char c = text[at_];
    if (escaped_) {
      escaped_ = false;
    } else if (c == '"') {
      in_string_ = false;
      ++at_;
      return Result::kDone;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      return Result::kMalformed;
    } else {
      escaped_ = c == '\\';
    }
  }
  return Result::kOpen;
}

ToolCallScan::Result ToolCallScan::scan(std::string_view text, std::string_view close) {
  if (part_ == Part::kBefore) {
    begin_ = skip_space(text, begin_);
    if (begin_ == text.size()) return Result::kOpen;
    if (text[begin_] != '{') return Result::kMalformed;
    part_ = Part::kObject;
  }
  if (part_ == Part::kObject) {
    const Result object = object_.scan(text.substr(begin_));
    if (object != Result::kDone) return object;
    end_ = begin_ + object_.end();
    part_ = Part::kAfter;
  }
  end_ = skip_space(text, end_);
  const std::string_view rest = text.substr(end_);
  if (!rest.starts_with(close)) {
    return close.starts_with(rest) ? Result::kOpen : Result::kMalformed;
  }
  end_ += close.size();
  return Result::kDone;
}

}  // namespace trtmc
