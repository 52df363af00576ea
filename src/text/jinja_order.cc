// Python's ==, < and hash() of values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/hash.h"
#include "text/jinja_limits.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {
namespace {

constexpr int kUnordered = 2;

template <typename Number>
int order(Number left, Number right) {
  return left < right ? -1 : (left > right ? 1 : 0);
}

// Exact, as Python's: a double above 2^53 is not the integer that it rounds to.
int compare_integer_with_real(int64_t left, double right) {
  if (std::isnan(right)) return kUnordered;
  if (right >= 9223372036854775808.0) return -1;
  if (right < -9223372036854775808.0) return 1;
  const double whole = std::trunc(right);
  const int by_whole = order(left, static_cast<int64_t>(whole));
  return by_whole != 0 ? by_whole : order(whole, right);
}

int compare_digits(const std::string& left, const std::string& right) {
  const bool left_negative = left.front() == '-', right_negative = right.front() == '-';
  if (left_negative != right_negative) return left_negative ? -1 : 1;
  const int by_size = order(left.size(), right.size());
  const int by_value = by_size != 0 ? by_size : order(left.compare(right), 0);
  return left_negative ? -by_value : by_value;
}

bool is_number(const Value& value) { return value.as_real().has_value(); }

// Of two numbers.
int compare_numbers(const Value& left, const Value& right) {
  const auto left_integer = left.as_integer(), right_integer = right.as_integer();
  if (left_integer && right_integer) return order(*left_integer, *right_integer);
  if (left.big_integer() && right.big_integer()) {
    return compare_digits(left.big_integer()->digits, right.big_integer()->digits);
  }
  if (left.big_integer() && right_integer) return left.big_integer()->digits[0] == '-' ? -1 : 1;
  if (right.big_integer() && left_integer) return right.big_integer()->digits[0] == '-' ? 1 : -1;
  if (left_integer && right.real()) return compare_integer_with_real(*left_integer, *right.real());
  if (right_integer && left.real()) {
    const int reversed = compare_integer_with_real(*right_integer, *left.real());
    return reversed == kUnordered ? kUnordered : -reversed;
  }
  const double left_real = *left.as_real(), right_real = *right.as_real();
  if (std::isnan(left_real) || std::isnan(right_real)) return kUnordered;
  return order(left_real, right_real);
}

bool equal_items(const std::vector<Value>& left, const std::vector<Value>& right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (!left[i].same_as(right[i]) && !equal(left[i], right[i])) return false;
  }
  return true;
}

bool equal_dicts(const Dict& left, const Dict& right) {
  if (left.size() != right.size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Value* other = right.find(key);
    if (other == nullptr || (!value.same_as(*other) && !equal(value, *other))) return false;
  }
  return true;
}

bool equal_ranges(const Range& left, const Range& right) {
  if (left.size() != right.size()) return false;
  if (left.size() == 0) return true;
  return left.start == right.start && (left.size() == 1 || left.step == right.step);
}

}  // namespace

bool equal(const Value& left, const Value& right) {
  if (left.string() && right.string()) return left.string()->text == right.string()->text;
  if (is_number(left) && is_number(right)) return compare_numbers(left, right) == 0;
  if (left.is_undefined() && right.is_undefined()) return true;
  if (left.dict() && right.dict()) return equal_dicts(*left.dict(), *right.dict());
  if (left.range() && right.range()) return equal_ranges(*left.range(), *right.range());
  const Sequence *left_items = left.sequence(), *right_items = right.sequence();
  if (left_items && right_items && left_items->kind == right_items->kind &&
      left_items->kind <= Sequence::Kind::kTuple) {
    return equal_items(left_items->items, right_items->items);
  }
  return left.same_as(right);
}

size_t hash(const Value& value) {
  if (const String* text = value.string()) return TextHash()(text->text);
  if (const auto integer = value.as_integer()) return std::hash<int64_t>()(*integer);
  if (value.big_integer()) return std::hash<double>()(*value.as_real());
  if (const double* real = value.real()) {
    // Equal numbers of different types are one key.
    const bool whole = std::trunc(*real) == *real && std::abs(*real) < 9.2e18;
    return whole ? std::hash<int64_t>()(static_cast<int64_t>(*real)) : std::hash<double>()(*real);
  }
  if (const Sequence* tuple = value.tuple()) {
    size_t result = 0x345678;
    for (const Value& item : tuple->items) result = result * 1000003 + hash(item);
    return result;
  }
  if (value.sequence() || value.dict()) {
    fail(fmt::format("unhashable type: '{}'", value.type_name()));
  }
  return std::hash<std::string_view>()(value.type_name());
}

int compare(const Value& left, const Value& right, std::string_view symbol) {
  if (left.string() && right.string()) {
    return order(left.string()->text.compare(right.string()->text), 0);
  }
  if (is_number(left) && is_number(right)) return compare_numbers(left, right);
  const Sequence *left_items = left.sequence(), *right_items = right.sequence();
  if (left_items && right_items && left_items->kind == right_items->kind &&
      left_items->kind <= Sequence::Kind::kTuple) {
    const size_t common = std::min(left_items->items.size(), right_items->items.size());
    for (size_t i = 0; i < common; ++i) {
      const Value &a = left_items->items[i], &b = right_items->items[i];
      if (!a.same_as(b) && !equal(a, b)) return compare(a, b, symbol);
    }
    return order(left_items->items.size(), right_items->items.size());
  }
  if (const Undefined* undefined = left.undefined()) fail(undefined->message());
  if (const Undefined* undefined = right.undefined()) fail(undefined->message());
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", symbol,
                   left.type_name(), right.type_name()));
}

}  // namespace trtmc::jinja
