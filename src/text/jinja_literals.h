// Literals in a template's source: numbers, and the escapes in strings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/jinja_values.h"

namespace trtmc::jinja {

// The bytes of the number at the start of `text`, which begins with a digit. After a dot it is no
// float: `a.0.1` indexes twice.
size_t number_size(std::string_view text, bool after_dot);
Value number_value(std::string_view text);

// The string that `body`, the text between quotes, stands for. Throws a Failure.
std::string unescaped(std::string_view body);

}  // namespace trtmc::jinja
