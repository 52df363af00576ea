// Finding text in text in linear time: the needle of an untrusted template may be anything.
#pragma once

#include <cstring>
#include <string_view>

namespace trtmc::jinja {

// As text.find(part, from), but never quadratic.
inline size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  // The sanitizers' memmem looks at the whole text for each hit; for one byte there is a direct
  // way.
  if (part.size() == 1) return text.find(part[0], from);
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace trtmc::jinja
