// The methods of Python's str. Private to the built-ins.
#pragma once

#include <span>

#include "text/jinja_limits.h"
#include "text/jinja_methods.h"

namespace trtmc::jinja {

std::span<const Method> string_methods();

// str.replace on the string `self`, paid for.
Value replace_in(Meter& meter, const Value& self, std::string_view from, std::string_view to,
                 int64_t limit);

}  // namespace trtmc::jinja
