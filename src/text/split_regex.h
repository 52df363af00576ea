// Any other split pattern, through PCRE2. Private to text/.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/function_ref.h"

namespace trtmc {

// Thread-safe: const after construction.
class SplitRegex {
 public:
  // Throws kUnsupported for a pattern that can't be matched exactly as Oniguruma would, or
  // kInvalidArgument for one that is none.
  explicit SplitRegex(std::string_view pattern);
  ~SplitRegex();
  SplitRegex(SplitRegex&&) noexcept;
  SplitRegex& operator=(SplitRegex&&) noexcept;

  // Every match as (begin, end) from left to right; an empty one never directly after another.
  // `text` is UTF-8. Throws kInvalidArgument where the pattern runs into the limit on its steps,
  // at one place or in all of the text.
  void for_each_match(std::string_view text, FunctionRef<void(size_t, size_t)> visit) const;

 private:
  struct Code;
  std::unique_ptr<const Code> code_;
};

}  // namespace trtmc
