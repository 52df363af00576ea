// What both streams of this folder ask of text that is still coming.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace trtmc {

// How many bytes at the end of `text` may be the beginning of `marker`: the length of the longest
// proper prefix of it there. `marker` is not empty.
inline size_t partial_match_tail(std::string_view text, std::string_view marker) {
  size_t tail = std::min(text.size(), marker.size() - 1);
  while (tail > 0 && !text.ends_with(marker.substr(0, tail))) --tail;
  return tail;
}

}  // namespace trtmc
