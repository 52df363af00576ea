#include "text/jinja_arithmetic.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "text/jinja_limits.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

[[noreturn]] void fail_range() {
  fail_unsupported("calculating with integers beyond 64 bits is not supported");
}

int64_t subtract_integers(int64_t left, int64_t right) {
  int64_t result;
  if (__builtin_sub_overflow(left, right, &result)) fail_range();
  return result;
}

void refuse_zero(bool zero) {
  if (zero) fail("division by zero");
}

int64_t floor_divide(int64_t left, int64_t right) {
  refuse_zero(right == 0);
  if (right == -1) return subtract_integers(0, left);
  const int64_t quotient = left / right;
  return quotient - ((left % right != 0 && (left < 0) != (right < 0)) ? 1 : 0);
}

int64_t modulo(int64_t left, int64_t right) {
  refuse_zero(right == 0);
  if (right == -1) return 0;
  const int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

// Whether a double holds the integer exactly.
bool is_exact(int64_t value) {
  const auto real = static_cast<double>(value);
  return std::abs(real) < 9.2e18 && static_cast<int64_t>(real) == value;
}

double true_divide(int64_t left, int64_t right) {
  refuse_zero(right == 0);
  // Of exact operands the quotient is rounded once, as Python's.
  if (!is_exact(left) || !is_exact(right)) fail_range();
  return static_cast<double>(left) / static_cast<double>(right);
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    refuse_zero(base == 0);
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  if (base == 0 || base == 1) return exponent == 0 ? int64_t{1} : base;
  if (base == -1) return exponent % 2 == 0 ? int64_t{1} : int64_t{-1};
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) result = multiply_integers(result, base);
  return result;
}

Value calculate_integers(std::string_view symbol, int64_t left, int64_t right) {
  if (symbol == "+") return add_integers(left, right);
  if (symbol == "-") return subtract_integers(left, right);
  if (symbol == "*") return multiply_integers(left, right);
  if (symbol == "/") return true_divide(left, right);
  if (symbol == "//") return floor_divide(left, right);
  if (symbol == "%") return modulo(left, right);
  return power(left, right);
}

double modulo(double left, double right) {
  refuse_zero(right == 0);
  const double rest = std::fmod(left, right);
  if (rest == 0) return std::copysign(0.0, right);
  return (rest < 0) != (right < 0) ? rest + right : rest;
}

// As CPython's float_floor_div, which corrects the quotient by the rest.
double floor_divide(double left, double right) {
  refuse_zero(right == 0);
  double rest = std::fmod(left, right);
  double quotient = (left - rest) / right;
  if (rest != 0 && (right < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

double power(double base, double exponent) {
  refuse_zero(base == 0 && exponent < 0);
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) &&
      exponent != std::floor(exponent)) {
    fail_unsupported("complex numbers are not supported");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
    fail("the result of ** is out of range");
  }
  return result;
}

Value calculate_reals(std::string_view symbol, double left, double right) {
  if (symbol == "+") return left + right;
  if (symbol == "-") return left - right;
  if (symbol == "*") return left * right;
  if (symbol == "/") {
    refuse_zero(right == 0);
    return left / right;
  }
  if (symbol == "//") return floor_divide(left, right);
  if (symbol == "%") return modulo(left, right);
  return power(left, right);
}

int64_t round_integer(int64_t value, int64_t digits) {
  if (digits >= 0) return value;
  if (digits < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i < -digits; ++i) unit *= 10;
  const int64_t down = floor_divide(value, unit), rest = modulo(value, unit);
  const bool up = rest > unit - rest || (rest == unit - rest && down % 2 != 0);
  return multiply_integers(add_integers(down, up ? 1 : 0), unit);
}

// To a multiple of 10^zeros, from the exact decimal digits.
double round_whole_places(double value, size_t zeros) {
  char buffer[2048];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::abs(value), std::chars_format::fixed, 1100)
          .ptr;
  const std::string digits = std::string(zeros + 1, '0') + std::string(buffer, end);
  const size_t cut = digits.find('.') - zeros;
  std::string kept = digits.substr(0, cut);
  const std::string_view rest = std::string_view(digits).substr(cut);
  const bool more = rest.substr(1).find_first_of("123456789") != std::string_view::npos;
  const bool odd = (kept.back() - '0') % 2 != 0;
  if (rest[0] > '5' || (rest[0] == '5' && (more || odd))) {
    size_t i = kept.size() - 1;
    while (kept[i] == '9') kept[i--] = '0';
    ++kept[i];
  }
  const double result = *parse_float(kept + std::string(zeros, '0'));
  return std::copysign(result, value);
}

double round_real(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits < 0) return round_whole_places(value, static_cast<size_t>(-digits));
  char buffer[1024];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed,
                                 static_cast<int>(digits))
                       .ptr;
  return *parse_float(std::string_view(buffer, static_cast<size_t>(end - buffer)));
}

}  // namespace

int64_t add_integers(int64_t left, int64_t right) {
  int64_t result;
  if (__builtin_add_overflow(left, right, &result)) fail_range();
  return result;
}

int64_t multiply_integers(int64_t left, int64_t right) {
  int64_t result;
  if (__builtin_mul_overflow(left, right, &result)) fail_range();
  return result;
}

Value calculate(std::string_view symbol, const Value& left, const Value& right) {
  const auto left_integer = left.as_integer(), right_integer = right.as_integer();
  if (left_integer && right_integer) {
    return calculate_integers(symbol, *left_integer, *right_integer);
  }
  if (!left.real() && !right.real()) fail_range();
  return calculate_reals(symbol, *left.as_real(), *right.as_real());
}

Value negated(const Value& number) {
  if (const double* real = number.real()) return -*real;
  if (const auto integer = number.as_integer()) return subtract_integers(0, *integer);
  fail_range();
}

Value absolute_sign(const Value& number) {
  if (const auto integer = number.as_integer()) return *integer;
  return number;
}

Value absolute(const Value& number) {
  if (const double* real = number.real()) return std::abs(*real);
  if (const auto integer = number.as_integer()) {
    return *integer < 0 ? subtract_integers(0, *integer) : *integer;
  }
  fail_range();
}

Value rounded(const Value& number, int64_t digits) {
  if (const double* real = number.real()) return round_real(*real, digits);
  if (const auto integer = number.as_integer()) return round_integer(*integer, digits);
  return number;
}

}  // namespace trtmc::jinja
