#include "text/jinja_tests.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_eval.h"
#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_predicates.h"
#include "text/jinja_repr.h"

namespace trtmc::jinja {
namespace {

// A test without an argument is a predicate of the value; this checks that there is none.
template <bool (*holds)(const Value&)>
bool predicate(Interpreter&, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "the test", {});
  return holds(value);
}

bool divides(Interpreter& interpreter, const Value& value, const Value& divisor, int64_t rest) {
  return equal(binary(interpreter.meter(), "%", value, divisor), rest);
}

bool is_sequence(const Value& value) {
  const Sequence* items = value.sequence();
  return value.string() || value.dict() || value.range() || value.is_undefined() ||
         (items && items->kind <= Sequence::Kind::kTuple);
}

bool is_iterable(const Value& value) {
  return is_sequence(value) || value.sequence() || value.iterator() ||
         (value.object() && value.type_name() == "LoopContext");
}

bool is_number(const Value& value) { return value.as_real().has_value(); }

bool is_integer(const Value& value) { return value.integer() || value.big_integer(); }

bool is_callable(const Value& value) {
  return value.is_undefined() || (value.object() && value.object()->callable());
}

bool is_named(const Value& value, bool (*known)(std::string_view)) {
  hash(value);  // Python looks it up in a dict, which a list can't be.
  return value.string() && known(value.string()->text);
}

bool test_odd(Interpreter& interpreter, const Value& value, const Arguments&) {
  return divides(interpreter, value, int64_t{2}, 1);
}

bool test_even(Interpreter& interpreter, const Value& value, const Arguments&) {
  return divides(interpreter, value, int64_t{2}, 0);
}

bool test_divisible(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const BoundArguments bound(arguments, "divisibleby", {"num"}, 1);
  return divides(interpreter, value, bound.at(0), 0);
}

bool test_same(Interpreter&, const Value& value, const Arguments& arguments) {
  return value.same_as(BoundArguments(arguments, "sameas", {"other"}, 1).at(0));
}

bool test_in(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return contains(interpreter.meter(), BoundArguments(arguments, "in", {"seq"}, 1).at(0), value);
}

enum class Order { kEq, kNe, kLt, kLe, kGt, kGe };

template <Order order>
bool test_order(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  static constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">="};
  const std::string_view symbol = kSymbols[static_cast<size_t>(order)];
  const BoundArguments bound(arguments, symbol, {"/other"}, 1);
  return compared(interpreter.meter(), symbol, value, bound.at(0));
}

constexpr Test kTests[] = {
    {"!=", test_order<Order::kNe>},
    {"<", test_order<Order::kLt>},
    {"<=", test_order<Order::kLe>},
    {"==", test_order<Order::kEq>},
    {">", test_order<Order::kGt>},
    {">=", test_order<Order::kGe>},
    {"boolean", predicate<[](const Value& value) { return value.boolean() != nullptr; }>},
    {"callable", predicate<is_callable>},
    {"defined", predicate<[](const Value& value) { return !value.is_undefined(); }>},
    {"divisibleby", test_divisible},
    {"eq", test_order<Order::kEq>},
    {"equalto", test_order<Order::kEq>},
    {"escaped",
     predicate<[](const Value& value) { return value.string() && value.string()->markup; }>},
    {"even", test_even},
    {"false", predicate<[](const Value& value) { return value.boolean() && !*value.boolean(); }>},
    {"filter", predicate<[](const Value& value) {
       return is_named(value, [](std::string_view name) { return find_filter(name) != nullptr; });
     }>},
    {"float", predicate<[](const Value& value) { return value.real() != nullptr; }>},
    {"ge", test_order<Order::kGe>},
    {"greaterthan", test_order<Order::kGt>},
    {"gt", test_order<Order::kGt>},
    {"in", test_in},
    {"integer", predicate<is_integer>},
    {"iterable", predicate<is_iterable>},
    {"le", test_order<Order::kLe>},
    {"lessthan", test_order<Order::kLt>},
    {"lower", predicate<[](const Value& value) { return is_lower(to_text(value)); }>},
    {"lt", test_order<Order::kLt>},
    {"mapping", predicate<[](const Value& value) { return value.dict() != nullptr; }>},
    {"ne", test_order<Order::kNe>},
    {"none", predicate<[](const Value& value) { return value.is_none(); }>},
    {"number", predicate<is_number>},
    {"odd", test_odd},
    {"sameas", test_same},
    {"sequence", predicate<is_sequence>},
    {"string", predicate<[](const Value& value) { return value.string() != nullptr; }>},
    {"test", predicate<[](const Value& value) {
       return is_named(value, [](std::string_view name) { return find_test(name) != nullptr; });
     }>},
    {"true", predicate<[](const Value& value) { return value.boolean() && *value.boolean(); }>},
    {"undefined", predicate<[](const Value& value) { return value.is_undefined(); }>},
    {"upper", predicate<[](const Value& value) { return is_upper(to_text(value)); }>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto found = std::find_if(std::begin(kTests), std::end(kTests),
                                  [&](const Test& test) { return test.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace trtmc::jinja
