// Any other split pattern, through PCRE2. Private to text/.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/function_ref.h"

namespace trtmc {

class SplitRegex {
 public:
  // Throws kUnsupported for a pattern that can't be matched exactly as Oniguruma would.
  explicit SplitRegex(std::string_view pattern);

  // Every match as (begin, end) from left to right; an empty one never directly after another.
  void for_each_match(std::string_view text, FunctionRef<void(size_t, size_t)> visit) const;
};

}  // namespace trtmc
