// Reads a format or its specification. Private to the two ways to format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "text/jinja_limits.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {

// Reads a format from left to right.
class FormatScanner {
 public:
  explicit FormatScanner(std::string_view text) : text_(text) {}

  bool at_end() const { return next_ >= text_.size(); }
  char peek(size_t ahead = 0) const {
    return next_ + ahead < text_.size() ? text_[next_ + ahead] : '\0';
  }
  char take() {
    const char c = peek();
    ++next_;
    return c;
  }
  bool skip(char c) { return peek() == c && !at_end() && (++next_, true); }
  std::string_view take_until(std::string_view ends) {
    const size_t end = std::min(text_.find_first_of(ends, next_), text_.size());
    const std::string_view result = text_.substr(next_, end - next_);
    next_ = end;
    return result;
  }
  std::string_view take_code_point() {
    const size_t length = byte_offset(text_.substr(next_, 4), 1);
    next_ += length;
    return text_.substr(next_ - length, length);
  }
  std::optional<int64_t> take_number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (take() - '0');
      if (value > static_cast<int64_t>(kMaxStringBytes)) fail("a number in a format is too large");
    }
    return value;
  }

 private:
  std::string_view text_;
  size_t next_ = 0;
};

}  // namespace trtmc::jinja
