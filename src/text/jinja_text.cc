#include "text/jinja_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "text/jinja_search.h"
#include "text/jinja_unicode.h"

namespace trtmc::jinja {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Of the first byte of a code point in valid UTF-8.
size_t length_at(std::string_view text, size_t offset) {
  size_t length = 1;
  while (offset + length < text.size() && is_continuation(text[offset + length])) ++length;
  return length;
}

// Whether a capital sigma at `index` ends a word, as CPython's handle_capital_sigma decides.
bool is_final_sigma(std::u32string_view text, size_t index) {
  size_t before = index;
  while (before > 0 && has_property(text[before - 1], Property::kCaseIgnorable)) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = index + 1;
  while (after < text.size() && has_property(text[after], Property::kCaseIgnorable)) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::u32string& out, std::u32string_view text, size_t index) {
  if (text[index] == U'\u03A3') {
    out += is_final_sigma(text, index) ? U'\u03C2' : U'\u03C3';
  } else {
    append_mapped(out, text[index], Case::kLower);
  }
}

template <typename Append>
std::string convert(std::string_view text, const Append& append) {
  const std::u32string from = to_utf32(text);
  std::u32string to;
  to.reserve(from.size());
  for (size_t i = 0; i < from.size(); ++i) append(to, from, i);
  return to_utf8(to);
}

}  // namespace

bool is_ascii(std::string_view text) {
  // Eight bytes at a time: every string that is made is looked through once.
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= text.size(); i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, sizeof word);
    if (word & kHighBits) return false;
  }
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(i), text.end(),
                     [](char c) { return (c & 0x80) == 0; });
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::vector<std::string_view> code_points(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t i = 0; i < text.size(); i += result.back().size()) {
    result.push_back(text.substr(i, length_at(text, i)));
  }
  return result;
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) offset += length_at(text, offset);
  return offset;
}

std::u32string to_utf32(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto code_point = decode_utf8(text);
    result += code_point ? code_point->value : U'\uFFFD';
    text.remove_prefix(code_point ? static_cast<size_t>(code_point->length) : 1);
  }
  return result;
}

std::string to_utf8(std::u32string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char32_t c : text) append_utf8(result, c);
  return result;
}

std::string upper(std::string_view text) {
  return convert(text, [](std::u32string& out, std::u32string_view from, size_t i) {
    append_mapped(out, from[i], Case::kUpper);
  });
}

std::string lower(std::string_view text) { return convert(text, append_lower); }

std::string title(std::string_view text) {
  bool inside = false;
  return convert(text, [&](std::u32string& out, std::u32string_view from, size_t i) {
    if (inside) {
      append_lower(out, from, i);
    } else {
      append_mapped(out, from[i], Case::kTitle);
    }
    inside = is_cased(from[i]);
  });
}

std::string capitalize(std::string_view text) {
  return convert(text, [](std::u32string& out, std::u32string_view from, size_t i) {
    if (i == 0) {
      append_mapped(out, from[i], Case::kTitle);
    } else {
      append_lower(out, from, i);
    }
  });
}

std::string swapcase(std::string_view text) {
  return convert(text, [](std::u32string& out, std::u32string_view from, size_t i) {
    if (has_property(from[i], Property::kUppercase)) {
      append_lower(out, from, i);
    } else if (has_property(from[i], Property::kLowercase)) {
      append_mapped(out, from[i], Case::kUpper);
    } else {
      out += from[i];
    }
  });
}

std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> chars) {
  const std::u32string set = chars ? to_utf32(*chars) : std::u32string();
  const auto goes = [&](std::string_view character) {
    const char32_t c = decode_utf8(character)->value;
    return chars ? set.find(c) != std::u32string::npos : has_property(c, Property::kSpace);
  };
  while ((side & kLeft) && !text.empty()) {
    const std::string_view first = text.substr(0, length_at(text, 0));
    if (!goes(first)) break;
    text.remove_prefix(first.size());
  }
  while ((side & kRight) && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && is_continuation(text[start])) --start;
    if (!goes(text.substr(start))) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

size_t count_occurrences(std::string_view text, std::string_view part) {
  if (part.empty()) return count_code_points(text) + 1;
  size_t count = 0;
  for (size_t at = find_text(text, part, 0); at != std::string_view::npos;
       at = find_text(text, part, at + part.size())) {
    ++count;
  }
  return count;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    int64_t limit) {
  std::string result;
  size_t done = 0;
  if (from.empty()) {
    // Before each code point, and at the end.
    while (limit != 0) {
      result += to;
      if (limit > 0) --limit;
      if (done == text.size()) break;
      const size_t length = length_at(text, done);
      result += text.substr(done, length);
      done += length;
    }
  } else {
    for (size_t at; limit != 0 && (at = find_text(text, from, done)) != std::string_view::npos;) {
      result += text.substr(done, at - done);
      result += to;
      done = at + from.size();
      if (limit > 0) --limit;
    }
  }
  result += text.substr(done);
  return result;
}

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&#34;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace trtmc::jinja
