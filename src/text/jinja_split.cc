// Cutting strings as Python's str.split, rsplit and splitlines do.
#include <algorithm>

#include "base/utf8.h"
#include "text/jinja_limits.h"
#include "text/jinja_search.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace trtmc::jinja {
namespace {

using Parts = std::vector<std::string_view>;

bool is_space(std::string_view character) {
  return has_property(decode_utf8(character)->value, Property::kSpace);
}

// The words of `text` as byte ranges.
Parts words(std::string_view text) {
  Parts result;
  size_t start = std::string_view::npos, offset = 0;
  for (const std::string_view character : code_points(text)) {
    if (is_space(character)) {
      if (start != std::string_view::npos) result.push_back(text.substr(start, offset - start));
      start = std::string_view::npos;
    } else if (start == std::string_view::npos) {
      start = offset;
    }
    offset += character.size();
  }
  if (start != std::string_view::npos) result.push_back(text.substr(start));
  return result;
}

// Where each part starts within `text`.
size_t start_of(std::string_view text, std::string_view part) {
  return static_cast<size_t>(part.data() - text.data());
}

// What str.splitlines breaks at, besides \r\n.
bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

Parts split_at(std::string_view text, std::string_view separator, int64_t limit) {
  Parts result;
  size_t done = 0;
  for (size_t at;
       limit != 0 && (at = find_text(text, separator, done)) != std::string_view::npos;) {
    result.push_back(text.substr(done, at - done));
    done = at + separator.size();
    if (limit > 0) --limit;
  }
  result.push_back(text.substr(done));
  return result;
}

}  // namespace

Parts split(std::string_view text, std::optional<std::string_view> separator, int64_t limit) {
  if (separator) {
    if (separator->empty()) fail("empty separator");
    return split_at(text, *separator, limit);
  }
  Parts parts = words(text);
  if (limit >= 0 && parts.size() > static_cast<size_t>(limit)) {
    const size_t rest = start_of(text, parts[static_cast<size_t>(limit)]);
    parts.resize(static_cast<size_t>(limit));
    parts.push_back(text.substr(rest));  // With the white space at its end.
  }
  return parts;
}

Parts rsplit(std::string_view text, std::optional<std::string_view> separator, int64_t limit) {
  if (separator) {
    if (separator->empty()) fail("empty separator");
    if (limit < 0) return split_at(text, *separator, limit);
    Parts parts;
    size_t end = text.size();
    for (size_t at; limit > 0 && end >= separator->size(); --limit) {
      at = text.rfind(*separator, end - separator->size());
      if (at == std::string_view::npos) break;
      parts.push_back(text.substr(at + separator->size(), end - at - separator->size()));
      end = at;
    }
    parts.push_back(text.substr(0, end));
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  Parts parts = words(text);
  if (limit >= 0 && parts.size() > static_cast<size_t>(limit)) {
    const auto kept = parts.end() - static_cast<std::ptrdiff_t>(limit);
    const std::string_view last = *std::prev(kept);
    parts.erase(parts.begin(), kept);
    parts.insert(parts.begin(), text.substr(0, start_of(text, last) + last.size()));
  }
  return parts;
}

Parts splitlines(std::string_view text, bool keep_ends) {
  Parts result;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    const auto code_point = *decode_utf8(text.substr(i));
    size_t next = i + static_cast<size_t>(code_point.length);
    if (is_line_break(code_point.value)) {
      if (code_point.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      result.push_back(text.substr(start, (keep_ends ? next : i) - start));
      start = next;
    }
    i = next;
  }
  if (start < text.size()) result.push_back(text.substr(start));
  return result;
}

}  // namespace trtmc::jinja
