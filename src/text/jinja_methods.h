// The methods of Python's str, list, tuple and dict. Those that change a value exist but may not be
// called, as in Jinja's immutable sandbox.
#pragma once

#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

struct Method {
  std::string_view name;
  // Null: Python has it, but we do not.
  Value (*call)(Interpreter& interpreter, const Value& self, const Arguments& arguments);
  bool safe = true;
};

// Null if the type has no such method.
const Method* find_method(const Value& self, std::string_view name);
Value call_method(Interpreter& interpreter, const Method& method, const Value& self,
                  const Arguments& arguments);
// The method as a value of its own; undefined if it is not safe.
Value bind_method(const Method& method, const Value& self);

}  // namespace trtmc::jinja
