// The functions that every template can call.
#pragma once

#include <string_view>

#include "text/jinja_values.h"

namespace trtmc::jinja {

// Not set if there is none of that name.
Value find_global(std::string_view name);

}  // namespace trtmc::jinja
