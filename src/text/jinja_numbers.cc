// Numbers in text as Python's float() and int() read them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "text/jinja_limits.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {
namespace {

bool is_alnum(char c) {
  const char letter = static_cast<char>(c | 0x20);
  return (c >= '0' && c <= '9') || (letter >= 'a' && letter <= 'z');
}

// The decimal digits of all scripts as ASCII. They come in runs of ten.
std::string ascii_digits(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  std::string result;
  for (const char32_t c : to_utf32(text)) {
    const auto ranges = property_ranges(Property::kDecimal);
    const auto range = std::find_if(ranges.begin(), ranges.end(), [&](const CodePointRange& r) {
      return r.low <= c && c <= r.high;
    });
    if (range == ranges.end()) {
      append_utf8(result, c);
    } else {
      result += static_cast<char>('0' + (c - range->low) % 10);
    }
  }
  return result;
}

// Without white space around and underscores between digits; nothing if an underscore stands
// elsewhere.
std::optional<std::string> plain_digits(std::string_view source) {
  const std::string text = ascii_digits(strip(source, kBoth));
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      result += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_alnum(text[i - 1]) || !is_alnum(text[i + 1])) {
      return std::nullopt;
    }
  }
  return result;
}

// What is beyond the range of a double, by its exponent: zero or infinity.
double out_of_range(std::string_view digits) {
  const size_t e = digits.find_first_of("eE");
  if (e != std::string_view::npos)
    return digits[e + 1] == '-' ? 0 : std::numeric_limits<double>::infinity();
  return digits.starts_with("0.") || digits.starts_with('.')
             ? 0
             : std::numeric_limits<double>::infinity();
}

int base_of_prefix(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char letter = static_cast<char>(digits[1] | 0x20);
  return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
}

}  // namespace

std::optional<double> parse_float(std::string_view text) {
  const auto plain = plain_digits(text);
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty()) return std::nullopt;
  const std::string word = lower(digits);
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (word == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    const bool number = (digits[0] >= '0' && digits[0] <= '9') || digits[0] == '.';
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (!number || end != digits.data() + digits.size() || error == std::errc::invalid_argument) {
      return std::nullopt;
    }
    if (error == std::errc::result_out_of_range) value = out_of_range(digits);
  }
  return negative ? -value : value;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  const auto value = parse_any_integer(text, 10);
  return value ? value->as_integer() : std::nullopt;
}

std::optional<Value> parse_any_integer(std::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  const auto plain = plain_digits(text);
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const int prefix = base_of_prefix(digits);
  if (prefix != 10 && (base == 0 || base == prefix)) {
    base = prefix;
    digits.remove_prefix(2);
  } else if (base == 0) {
    base = 10;
    if (digits.starts_with('0') && digits.find_first_not_of('0') != std::string_view::npos) {
      return std::nullopt;
    }
  }
  if (digits.empty() || !is_alnum(digits[0])) return std::nullopt;
  const std::string all = (negative ? "-" : "") + std::string(digits);
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(all.data(), all.data() + all.size(), value, static_cast<int>(base));
  if (end != all.data() + all.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc()) return value;
  if (base != 10) fail_unsupported("an integer beyond 64 bits is not supported");
  digits.remove_prefix(digits.find_first_not_of('0'));
  return Value::big_integer((negative ? "-" : "") + std::string(digits));
}

}  // namespace trtmc::jinja
