// Where a tool call ends in text that is still coming: every byte is looked at once, however many
// pieces the text comes in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace trtmc {

// White space as JSON has it.
inline constexpr std::string_view kJsonSpace = " \t\r\n";

// The first place from `i` on that is not white space, or the end.
inline size_t skip_space(std::string_view text, size_t i) {
  return std::min(text.find_first_not_of(kJsonSpace, i), text.size());
}

// Finds the end of a JSON object, array or string by its brackets and quotes. What is between them
// is not checked further, but what can't be JSON is seen early: a model that breaks off must not
// stall the stream.
class JsonEndScan {
 public:
  enum class Result { kOpen, kDone, kMalformed };

  // `text` begins with the value, and with the text of the calls before.
  Result scan(std::string_view text);
  size_t end() const { return at_; }  // Of the value, after kDone.

 private:
  Result scan_string(std::string_view text);

  size_t at_ = 0;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
};

// A call: an object with white space around it, then the closing marker.
class ToolCallScan {
 public:
  using Result = JsonEndScan::Result;

  // `text` is what follows the opening marker, and begins with the text of the calls before.
  Result scan(std::string_view text, std::string_view close);
  // Of the same text, after kDone.
  std::string_view object(std::string_view text) const {
    return text.substr(begin_, object_.end());
  }
  size_t end() const { return end_; }  // Behind the marker.

 private:
  enum class Part { kBefore, kObject, kAfter };

  Part part_ = Part::kBefore;
  size_t begin_ = 0, end_ = 0;  // Of the object; of what has been looked at behind it.
  JsonEndScan object_;
};

}  // namespace trtmc
