// Python's str() and repr() of values.
#pragma once

#include <string>

#include "text/jinja_values.h"

namespace trtmc::jinja {

// Both throw a Failure if the text gets longer than kMaxStringBytes.
void append_repr(std::string& out, const Value& value);
std::string repr(const Value& value);
// str(value): a string is itself, an undefined is empty.
std::string to_text(const Value& value);

}  // namespace trtmc::jinja
