// A set of Unicode code points, surrogates left out, as ranges. Private to text/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/function_ref.h"

namespace trtmc {

class CodePointSet {
 public:
  // The code points whose unicode_properties() are `wanted`.
  static CodePointSet with_properties(FunctionRef<bool(uint8_t)> wanted);

  // Both ends are within.
  void add(char32_t first, char32_t last);
  void add(const CodePointSet& other);
  CodePointSet complement() const;

  // "[\x{41}-\x{5a}]" for PCRE2; "(*FAIL)" if the set is empty.
  std::string to_regex() const;

 private:
  struct Range {
    char32_t first, last;
  };
  // In order, neither touching nor overlapping.
  std::vector<Range> merged() const;

  std::vector<Range> ranges_;  // As they were added.
};

}  // namespace trtmc
