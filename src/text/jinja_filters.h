// The filters that templates may use, as Jinja 3.1.6 defines them (`tojson` as Transformers does).
#pragma once

#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_values.h"

namespace trtmc::jinja {

struct Filter {
  std::string_view name;
  Value (*apply)(Interpreter& interpreter, const Value& value, const Arguments& arguments);
  bool contextual =
      false;  // jinja2 passes it the context, which there is none of while it compiles.
};

// Null if there is none of that name.
const Filter* find_filter(std::string_view name);

}  // namespace trtmc::jinja
