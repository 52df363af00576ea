#include "text/jinja_number_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

constexpr size_t kMaxPrecision = 500;

// |value| = 0.d1d2d3… times 10^point.
struct Decimal {
  std::string digits;
  int point;
};

// Of a finite value: `num_digits` digits, or the fewest that read back equal.
Decimal decimal(double value, std::optional<int> num_digits) {
  char buffer[1024];
  const auto [end, error] = num_digits
                                ? std::to_chars(buffer, buffer + sizeof buffer, std::abs(value),
                                                std::chars_format::scientific, *num_digits - 1)
                                : std::to_chars(buffer, buffer + sizeof buffer, std::abs(value),
                                                std::chars_format::scientific);
  if (error != std::errc()) fail("a number gets too long");
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  Decimal result{{}, 0};
  std::from_chars(buffer + e + (text[e + 1] == '+' ? 2 : 1), end, result.point);
  ++result.point;
  for (const char c : text.substr(0, e)) {
    if (c != '.') result.digits += c;
  }
  return result;
}

// d.ddde±xx.
std::string with_exponent(const Decimal& number, bool alternate) {
  std::string result(1, number.digits[0]);
  if (number.digits.size() > 1 || alternate) result += '.' + number.digits.substr(1);
  const int exponent = number.point - 1;
  return result + fmt::format("e{}{:02d}", exponent < 0 ? '-' : '+', std::abs(exponent));
}

// ddd.ddd; with `dot_zero` a whole number ends in ".0", with `alternate` at least in a point.
std::string with_point(const Decimal& number, bool alternate, bool dot_zero) {
  std::string whole = "0", fraction = number.digits;
  if (number.point > 0) {
    const auto size = static_cast<size_t>(number.point);
    whole = number.digits.substr(0, size);
    whole.append(size - whole.size(), '0');
    fraction = number.digits.size() > size ? number.digits.substr(size) : "";
  } else {
    fraction.insert(0, static_cast<size_t>(-number.point), '0');
  }
  if (fraction.empty() && dot_zero) fraction = "0";
  return fraction.empty() && !alternate ? whole : whole + '.' + fraction;
}

// CPython's format_float_short for 'g'.
std::string general_digits(double value, int precision, bool alternate, bool dot_zero) {
  precision = std::max(precision, 1);
  Decimal number = decimal(value, precision);
  if (!alternate) number.digits.erase(number.digits.find_last_not_of('0') + 1);
  if (number.digits.empty()) number.digits = "0";
  const bool large = number.point > precision - (dot_zero ? 1 : 0);
  return number.point <= -4 || large ? with_exponent(number, alternate)
                                     : with_point(number, alternate, dot_zero);
}

// ... and for 'r'.
std::string shortest_digits(double value, bool alternate) {
  const Decimal number = decimal(value, std::nullopt);
  return number.point <= -4 || number.point > 16 ? with_exponent(number, alternate)
                                                 : with_point(number, alternate, true);
}

std::string fixed_digits(double value, int precision, bool alternate) {
  char buffer[1024];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, std::abs(value),
                                          std::chars_format::fixed, precision);
  if (error != std::errc()) fail("a number gets too long");
  return std::string(buffer, end) + (alternate && precision == 0 ? "." : "");
}

std::string real_digits(double value, const FormatSpec& spec) {
  if (static_cast<size_t>(spec.precision.value_or(0)) > kMaxPrecision)
    fail("the precision of a number is too large");
  if (std::isinf(value)) return "inf";
  if (std::isnan(value)) return "nan";
  const auto precision = static_cast<int>(spec.precision.value_or(6));
  switch (spec.type | 0x20) {
    case 'f':
      return fixed_digits(value, precision, spec.alternate);
    case 'e':
      return with_exponent(decimal(value, precision + 1), spec.alternate);
    case 'g':
      return general_digits(value, precision, spec.alternate, false);
    default:  // None, which keeps the look of a float.
      return spec.precision ? general_digits(value, precision, spec.alternate, true)
                            : shortest_digits(value, spec.alternate);
  }
}

std::string format_real(double value, const FormatSpec& spec) {
  if (spec.type == '%') {
    FormatSpec fixed = spec;
    fixed.type = 'f';
    return real_digits(value * 100, fixed) + '%';
  }
  std::string digits = real_digits(value, spec);
  return spec.type >= 'E' && spec.type <= 'G' ? upper(digits) : digits;
}

struct Magnitude {
  std::string digits;
  bool negative;
};

Magnitude integer_digits(const Value& number, const FormatSpec& spec) {
  if (const BigInteger* big = number.big_integer()) {
    if (spec.type != 'd')
      fail_unsupported("this form of an integer beyond 64 bits is not supported");
    if (spec.precision) fail_unsupported("a precision beyond 64 bits is not supported");
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
  const auto least = static_cast<size_t>(spec.precision.value_or(0));
  if (least > kMaxPrecision) fail("the precision of a number is too large");
  if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
  return {spec.type == 'X' ? upper(digits) : digits, value < 0};
}

bool is_integer_type(char type) {
  return std::string_view("bdoxX").find(type) != std::string_view::npos;
}

// The digits in front of a point or an exponent with `spec.grouping` between the groups; zeros that
// fill the width get their separators too, and never begin with one.
std::string with_groups(const std::string& text, const FormatSpec& spec, size_t prefix_size) {
  const bool integer = is_integer_type(spec.type);
  const std::string_view alphabet = integer ? "0123456789abcdefABCDEF" : "0123456789";
  const size_t group = integer && spec.type != 'd' ? 4 : 3;
  const size_t end = std::min(text.find_first_not_of(alphabet), text.size());
  std::string digits = text.substr(0, end);
  const bool fills = spec.align == '=' && spec.fill == "0";
  const int64_t others = static_cast<int64_t>(prefix_size + text.size() - end);
  const int64_t wanted = fills ? std::max<int64_t>(spec.width - others, 0) : 0;
  const int64_t step = static_cast<int64_t>(group) + 1;
  auto count = static_cast<size_t>(wanted - wanted / step);
  if (count > 0 && count % group == 0 && wanted % step == 0) ++count;
  if (digits.size() < count) digits.insert(0, count - digits.size(), '0');
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % group == 0) result += spec.grouping;
    result += digits[i];
  }
  return result + text.substr(end);
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

std::string repr_float(double value) {
  const std::string digits = real_digits(value, {});
  return std::signbit(value) && !std::isnan(value) ? "-" + digits : digits;
}

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
  const std::string sign = magnitude.negative ? "-"
                           : spec.sign == '-' ? ""
                                              : std::string(1, spec.sign);
  if (spec.grouping) {
    meter.make_string(static_cast<size_t>(spec.width));
    magnitude.digits = with_groups(magnitude.digits, spec, sign.size() + prefix.size());
  }
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
