// Text as protocols and config files see it: letters of ASCII, blanks at the ends.
#pragma once

#include <strings.h>

#include <string_view>

namespace trtmc {

// Without the blanks, tabs and carriage returns at both ends.
inline std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace trtmc
