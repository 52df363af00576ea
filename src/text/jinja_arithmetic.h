// Arithmetic as Python's on int and float. Integers stay within 64 bits: a result beyond them is
// refused by name, never wrapped.
#pragma once

#include <string_view>

#include "text/jinja_values.h"

namespace trtmc::jinja {

// "+", "-", "*", "/", "//", "%", "**" of two numbers (bool counts as int). Throws a Failure for a
// division by zero and what leaves the 64 bits.
Value calculate(std::string_view symbol, const Value& left, const Value& right);
Value negated(const Value& number);
// +number: what a bool becomes an int by.
Value absolute_sign(const Value& number);
// abs(number).
Value absolute(const Value& number);
int64_t add_integers(int64_t left, int64_t right);
int64_t multiply_integers(int64_t left, int64_t right);

// round(number, digits), half to even on the exact decimal value; an int for an int.
Value rounded(const Value& number, int64_t digits);

}  // namespace trtmc::jinja
