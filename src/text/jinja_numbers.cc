// Numbers in text as Python's float() and int() read them.
#include <charconv>
#include <cmath>
#include <limits>

#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

// Without white space around and underscores between digits; nothing if an underscore stands
// elsewhere.
std::optional<std::string> plain_digits(std::string_view text) {
  text = strip(text, kBoth);
  std::string result;
  const auto is_digit = [&](size_t i) {
    return i < text.size() && ((text[i] >= '0' && text[i] <= '9') ||
                               ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z'));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      result += text[i];
    } else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) {
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace

std::optional<double> parse_float(std::string_view text) {
  const auto plain = plain_digits(text);
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty()) return std::nullopt;
  const char first = digits[0];
  const std::string word = lower(digits);
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (word == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if ((first >= '0' && first <= '9') || first == '.') {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size()) return std::nullopt;
    if (error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
      // Too large or too small: the sign of the exponent of what is left of it tells.
      value = word.find("e-") != std::string::npos ? 0 : std::numeric_limits<double>::infinity();
    }
  } else {
    return std::nullopt;
  }
  return negative ? -value : value;
}

std::optional<int64_t> parse_integer(std::string_view text, int base) {
  const auto plain = plain_digits(text);
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  if (digits.starts_with('+')) {
    digits.remove_prefix(1);
    if (digits.starts_with('-')) return std::nullopt;
  }
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace trtmc::jinja
