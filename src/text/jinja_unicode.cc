#include "text/jinja_unicode.h"

#include <algorithm>

namespace trtmc::jinja {

bool has_property(char32_t code_point, Property property) {
  const auto ranges = property_ranges(property);
  const auto found =
      std::upper_bound(ranges.begin(), ranges.end(), code_point,
                       [](char32_t c, const CodePointRange& range) { return c < range.low; });
  return found != ranges.begin() && code_point <= std::prev(found)->high;
}

bool is_cased(char32_t code_point) {
  return has_property(code_point, Property::kUppercase) ||
         has_property(code_point, Property::kLowercase) ||
         has_property(code_point, Property::kTitlecase);
}

void append_mapped(std::u32string& text, char32_t code_point, Case to) {
  const auto mappings = case_mappings(to);
  const auto found =
      std::lower_bound(mappings.begin(), mappings.end(), code_point,
                       [](const CaseMapping& mapping, char32_t c) { return mapping.from < c; });
  if (found == mappings.end() || found->from != code_point) {
    text += code_point;
    return;
  }
  for (const char32_t c : found->to) {
    if (c != 0) text += c;
  }
}

}  // namespace trtmc::jinja
