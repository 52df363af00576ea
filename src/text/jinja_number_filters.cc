// Filters from a value to a number, or to another value in its place.
#include <fmt/format.h>

#include <cmath>

#include "text/jinja_arithmetic.h"
#include "text/jinja_eval.h"
#include "text/jinja_filter_tables.h"
#include "text/jinja_operators.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

const Value& number(const Value& value, std::string_view filter) {
  if (value.as_real()) return value;
  if (const Undefined* undefined = value.undefined()) fail(undefined->message());
  fail(fmt::format("{}() takes a number, not a value of type {}", filter, value.type_name()));
}

Value filter_abs(Interpreter&, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "abs", {});
  return absolute(number(value, "abs"));
}

Value filter_default(Interpreter&, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "default", {"default_value", "boolean"});
  const bool replaced = value.is_undefined() || (bound.truthy_or(1, false) && !truthy(value));
  return replaced ? bound.value_or(0, "") : value;
}

// int(real), which has no form for infinity.
std::optional<Value> whole(double real) {
  if (std::isnan(real)) return std::nullopt;
  if (std::isinf(real)) fail("infinity has no integer");
  if (std::abs(real) >= 9.2e18) fail_unsupported("an integer beyond 64 bits is not supported");
  return Value(static_cast<int64_t>(real));
}

Value filter_int(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "int", {"default", "base"});
  Value fallback = bound.value_or(0, int64_t{0});
  if (const String* text = value.string()) {
    interpreter.meter().spend_text(text->text.size());
    if (auto integer = parse_any_integer(text->text, bound.integer_or(1, 10))) return *integer;
    const auto real = parse_float(text->text);
    if (!real || !std::isfinite(*real)) return fallback;
    return whole(*real).value_or(fallback);
  }
  if (value.big_integer()) return value;
  if (const auto integer = value.as_integer()) return *integer;
  if (const double* real = value.real()) return whole(*real).value_or(fallback);
  if (const Undefined* undefined = value.undefined()) fail(undefined->message());
  return fallback;
}

Value filter_float(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "float", {"default"});
  Value fallback = bound.value_or(0, 0.0);
  if (const String* text = value.string()) {
    interpreter.meter().spend_text(text->text.size());
    const auto real = parse_float(text->text);
    return real ? Value(*real) : fallback;
  }
  if (const auto real = value.as_real()) return *real;
  if (const Undefined* undefined = value.undefined()) fail(undefined->message());
  return fallback;
}

Value filter_round(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "round", {"precision", "method"});
  const int64_t precision = bound.integer_or(0, 0);
  const std::string method = bound.string_or(1, "common");
  if (method == "common") return rounded(number(value, "round"), precision);
  if (method != "ceil" && method != "floor") fail("the method of round() is common, ceil or floor");
  Meter& meter = interpreter.meter();
  const Value unit = binary(meter, "**", int64_t{10}, precision);
  const Value scaled = binary(meter, "*", number(value, "round"), unit);
  Value cut = scaled;
  if (const double* real = scaled.real()) {
    const auto integer = whole(method == "ceil" ? std::ceil(*real) : std::floor(*real));
    if (!integer) fail("nan has no integer");
    cut = *integer;
  }
  return binary(meter, "/", cut, unit);
}

Value filter_length(Interpreter&, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "length", {});
  return length(value);
}

Value filter_attr(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "attr", {"name"}, 1);
  return own_attribute(interpreter, value, bound.string(0));
}

constexpr Filter kNumberFilters[] = {
    {"abs", filter_abs},   {"attr", filter_attr},       {"count", filter_length},
    {"d", filter_default}, {"default", filter_default}, {"float", filter_float},
    {"int", filter_int},   {"length", filter_length},   {"round", filter_round},
};

}  // namespace

std::span<const Filter> number_filters() { return kNumberFilters; }

}  // namespace trtmc::jinja
