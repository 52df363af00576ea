#include "text/jinja_literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "text/jinja_limits.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

bool is_digit(char c, int base) {
  const int value = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : 99;
  return value < base;
}

// Digits with single underscores between them.
size_t digits_size(std::string_view text, int base, bool leading_underscore) {
  size_t size = 0;
  while (size < text.size()) {
    const bool underscore = text[size] == '_' && (size > 0 || leading_underscore);
    const size_t digit = size + (underscore ? 1 : 0);
    if (digit >= text.size() || !is_digit(text[digit], base)) break;
    size = digit + 1;
  }
  return size;
}

int base_of(std::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 10;
  const char letter = static_cast<char>(text[1] | 0x20);
  return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
}

size_t integer_size(std::string_view text) {
  const int base = base_of(text);
  if (base != 10) {
    const size_t digits = digits_size(text.substr(2), base, true);
    if (digits > 0) return digits + 2;
  }
  if (text[0] != '0') return digits_size(text, 10, false);
  return digits_size(text, 1, false);  // Zeros only: 007 is 00 and 7, which no grammar takes.
}

size_t float_size(std::string_view text) {
  const size_t whole = digits_size(text, 10, false);
  size_t size = whole;
  if (size < text.size() && text[size] == '.') {
    const size_t fraction = digits_size(text.substr(size + 1), 10, false);
    if (fraction > 0) size += 1 + fraction;
  }
  if (size < text.size() && (text[size] | 0x20) == 'e') {
    size_t digits = size + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const size_t exponent = digits_size(text.substr(std::min(digits, text.size())), 10, false);
    if (exponent > 0) return digits + exponent;
  }
  return size == whole ? 0 : size;
}

// One escape: `body` starts behind the backslash. Returns how much of it is taken.
size_t append_escape(std::string& out, std::string_view body) {
  static constexpr std::string_view kLetters = "abfnrtv\\'\"";
  static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char c = body[0];
  if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
    out += kMeanings[at];
    return 1;
  }
  if (c == '\n') return 1;
  uint32_t value = 0;
  size_t taken = 0;
  if (is_digit(c, 8)) {
    while (taken < 3 && taken < body.size() && is_digit(body[taken], 8)) {
      value = value * 8 + static_cast<uint32_t>(body[taken++] - '0');
    }
  } else if (c == 'x' || c == 'u' || c == 'U') {
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    const std::string_view text = body.substr(1, digits);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + digits) {
      fail(fmt::format("\\{} in a string needs {} hexadecimal digits", c, digits));
    }
    taken = 1 + digits;
  } else if (c == 'N') {
    fail_unsupported("\\N{name} in a string is not supported");
  } else {
    out += '\\';  // No escape: the backslash stays.
    return 0;
  }
  if (value > 0x10FFFF) fail("an escape in a string is beyond U+10FFFF");
  if (value >= 0xD800 && value < 0xE000) fail("an escape in a string is half of a surrogate pair");
  append_utf8(out, value);
  return taken;
}

// Jinja decodes escapes after turning what is not ASCII into escapes, so a backslash in front of
// such a character leaves that character's escape as text.
size_t append_escaped_non_ascii(std::string& out, std::string_view body) {
  const auto code_point = *decode_utf8(body);
  const auto value = static_cast<uint32_t>(code_point.value);
  out += value < 0x100     ? fmt::format("\\x{:02x}", value)
         : value < 0x10000 ? fmt::format("\\u{:04x}", value)
                           : fmt::format("\\U{:08x}", value);
  return static_cast<size_t>(code_point.length);
}

}  // namespace

size_t number_size(std::string_view text, bool after_dot) {
  const size_t as_float = after_dot ? 0 : float_size(text);
  return as_float > 0 ? as_float : integer_size(text);
}

Value number_value(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  const int base = base_of(digits);
  if (base == 10 && digits.find_first_of(".eE") != std::string::npos) return *parse_float(digits);
  const char* first = digits.data() + (base == 10 ? 0 : 2);
  int64_t value = 0;
  if (std::from_chars(first, digits.data() + digits.size(), value, base).ec != std::errc()) {
    fail_unsupported("an integer beyond 64 bits is not supported in a template");
  }
  return value;
}

std::string unescaped(std::string_view body) {
  std::string out;
  for (size_t i = 0; i < body.size();) {
    if (body[i] != '\\') {
      out += body[i++];
      continue;
    }
    ++i;
    const std::string_view rest = body.substr(i);
    i += (rest[0] & 0x80) ? append_escaped_non_ascii(out, rest) : append_escape(out, rest);
  }
  return out;
}

}  // namespace trtmc::jinja
