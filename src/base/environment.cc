#include "base/environment.h"

#include <cstdlib>

namespace trtmc {

std::optional<std::string> process_environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return {};
  return value;
}

}  // namespace trtmc
