// The environment's variables, as a value that callers pass in, so that tests can replace them.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace trtmc {

// The value of an environment variable, or nothing if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// The process's own.
std::optional<std::string> process_environment(const char* name);

}  // namespace trtmc
