// The tests that templates may use behind `is`, as Jinja 3.1.6 defines them.
#pragma once

#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

struct Test {
  std::string_view name;
  bool (*holds)(Interpreter& interpreter, const Value& value, const Arguments& arguments);
};

// Null if there is none of that name.
const Test* find_test(std::string_view name);

}  // namespace trtmc::jinja
