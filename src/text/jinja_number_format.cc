#include "text/jinja_number_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

constexpr int64_t kMaxPrecision = 500;

std::string with_groups(const std::string& digits, char grouping, size_t group) {
  // Of the digits in front of a point or an exponent only.
  const size_t end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string result;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % group == 0) result += grouping;
    result += digits[i];
  }
  return result + digits.substr(end);
}

// The digits of |value| with the letter of `type`.
std::string real_digits(double value, char type, int64_t precision, bool alternate) {
  if (precision > kMaxPrecision) fail("the precision of a number is too large");
  value = std::abs(value);
  if (std::isinf(value)) return "inf";
  if (std::isnan(value)) return "nan";
  if (alternate) fail_unsupported("the alternate form of a float is not supported");
  const auto format = type == 'f'   ? std::chars_format::fixed
                      : type == 'e' ? std::chars_format::scientific
                                    : std::chars_format::general;
  char buffer[1024];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value, format, static_cast<int>(precision));
  if (error != std::errc()) fail("a number gets too long");
  return {buffer, end};
}

std::string format_real(double value, const FormatSpec& spec) {
  const char type = static_cast<char>(spec.type | 0x20);
  const bool percent = spec.type == '%';
  std::string digits = real_digits(percent ? value * 100 : value, percent ? 'f' : type,
                                   spec.precision.value_or(6), spec.alternate);
  if (percent) digits += '%';
  if (spec.type >= 'E' && spec.type <= 'G') digits = upper(digits);
  return digits;
}

struct Magnitude {
  std::string digits;
  bool negative;
};

Magnitude integer_digits(const Value& number, const FormatSpec& spec) {
  if (const BigInteger* big = number.big_integer()) {
    if (spec.type != 'd')
      fail_unsupported("this form of an integer beyond 64 bits is not supported");
    const bool negative = big->digits[0] == '-';
    return {big->digits.substr(negative ? 1 : 0), negative};
  }
  const int64_t value = *number.as_integer();
  const uint64_t magnitude =
      value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const int base = spec.type == 'd' ? 10 : spec.type == 'o' ? 8 : spec.type == 'b' ? 2 : 16;
  char buffer[65];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr;
  std::string digits(buffer, end);
  return {spec.type == 'X' ? upper(digits) : digits, value < 0};
}

bool is_integer_type(char type) {
  return std::string_view("bdoxX").find(type) != std::string_view::npos;
}

// `text` between the sign and prefix in front and the width.
std::string filled(Meter& meter, std::string_view prefix, std::string_view text,
                   const FormatSpec& spec, char default_align) {
  const auto size = static_cast<int64_t>(prefix.size() + count_code_points(text));
  const int64_t missing = std::max<int64_t>(spec.width - size, 0);
  if (static_cast<uint64_t>(missing) > kMaxStringBytes / spec.fill.size()) {
    fail_limit("a string of the template gets too long");
  }
  meter.make_string(text.size() + static_cast<size_t>(missing) * spec.fill.size());
  const char align = spec.align ? spec.align : default_align;
  const auto pad = [&](int64_t count) {
    std::string result;
    for (int64_t i = 0; i < count; ++i) result += spec.fill;
    return result;
  };
  std::string result;
  if (align == '>') result += pad(missing);
  if (align == '^') result += pad(missing / 2);
  result += prefix;
  if (align == '=') result += pad(missing);
  result += text;
  if (align == '<') result += pad(missing);
  if (align == '^') result += pad(missing - missing / 2);
  return result;
}

}  // namespace

std::string format_number(Meter& meter, const Value& number, const FormatSpec& spec) {
  Magnitude magnitude;
  std::string prefix;
  if (is_integer_type(spec.type)) {
    magnitude = integer_digits(number, spec);
    if (spec.alternate && spec.type != 'd') prefix = {'0', spec.type};
  } else {
    const double value = *number.as_real();
    magnitude = {format_real(value, spec), std::signbit(value) && !std::isnan(value)};
  }
  if (spec.grouping) {
    const bool by_four = is_integer_type(spec.type) && spec.type != 'd';
    if (spec.align == '=' && spec.fill == "0" && spec.width > 0) {
      fail_unsupported("zeros in front of groups of digits are not supported");
    }
    magnitude.digits = with_groups(magnitude.digits, spec.grouping, by_four ? 4 : 3);
  }
  const std::string sign = magnitude.negative ? "-"
                           : spec.sign == '-' ? ""
                                              : std::string(1, spec.sign);
  return filled(meter, sign + prefix, magnitude.digits, spec, '>');
}

std::string format_text(Meter& meter, std::string_view text, const FormatSpec& spec) {
  if (spec.align == '=') fail("'=' alignment is for numbers only");
  meter.spend_bytes(text.size());
  if (spec.precision)
    text = text.substr(0, byte_offset(text, static_cast<size_t>(*spec.precision)));
  return filled(meter, {}, text, spec, '<');
}

}  // namespace trtmc::jinja
