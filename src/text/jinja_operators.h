// What operators, subscripts and attribute look-ups do, with Python's rules inside Jinja's sandbox.
// Everything throws a Failure where Python raises, and pays the meter for what it makes.
#pragma once

#include <string_view>

#include "text/jinja_limits.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

// "+", "-", "*", "/", "//", "%", "**".
Value binary(Meter& meter, std::string_view symbol, const Value& left, const Value& right);
// "-", "+".
Value unary(std::string_view symbol, const Value& operand);
// "==", "!=", "<", "<=", ">", ">=", "in", "not in".
bool compared(Meter& meter, std::string_view symbol, const Value& left, const Value& right);
bool contains(Meter& meter, const Value& container, const Value& item);

// value[index] and value.name: what is missing is undefined, but nothing can be had of an
// undefined.
Value item(Interpreter& interpreter, const Value& value, const Value& index);
Value attribute(Interpreter& interpreter, const Value& value, std::string_view name);
// As attribute(), but without looking for a key of that name.
Value own_attribute(Interpreter& interpreter, const Value& value, std::string_view name);
// value[start:stop:step]; a bound that is not set is left out.
Value slice(Meter& meter, const Value& value, const Value& start, const Value& stop,
            const Value& step);

// len(value). Throws a Failure for what has none.
int64_t length(const Value& value);
// Pays for all the items and gives them.
std::vector<Value> items_of(Meter& meter, const Value& value);

}  // namespace trtmc::jinja
