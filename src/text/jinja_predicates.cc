#include "text/jinja_predicates.h"

#include <algorithm>

#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace trtmc::jinja {
namespace {

// Whether there are code points and all have one of the properties.
bool all_have(std::string_view text, std::initializer_list<Property> properties) {
  const std::u32string code_points = to_utf32(text);
  return !code_points.empty() &&
         std::all_of(code_points.begin(), code_points.end(), [&](char32_t c) {
           return std::any_of(properties.begin(), properties.end(),
                              [&](Property property) { return has_property(c, property); });
         });
}

// Whether some have `wanted` and none has one of `others`.
bool cased_as(std::string_view text, Property wanted, std::initializer_list<Property> others) {
  bool any = false;
  for (const char32_t c : to_utf32(text)) {
    for (const Property other : others) {
      if (has_property(c, other)) return false;
    }
    any = any || has_property(c, wanted);
  }
  return any;
}

}  // namespace

bool is_alpha(std::string_view text) { return all_have(text, {Property::kAlphabetic}); }
bool is_decimal(std::string_view text) { return all_have(text, {Property::kDecimal}); }
bool is_digit(std::string_view text) { return all_have(text, {Property::kDigit}); }
bool is_numeric(std::string_view text) { return all_have(text, {Property::kNumeric}); }
bool is_space(std::string_view text) { return all_have(text, {Property::kSpace}); }
bool is_printable(std::string_view text) {
  return text.empty() || all_have(text, {Property::kPrintable});
}
bool is_alnum(std::string_view text) {
  return all_have(
      text, {Property::kAlphabetic, Property::kDecimal, Property::kDigit, Property::kNumeric});
}
bool is_lower(std::string_view text) {
  return cased_as(text, Property::kLowercase, {Property::kUppercase, Property::kTitlecase});
}
bool is_upper(std::string_view text) {
  return cased_as(text, Property::kUppercase, {Property::kLowercase, Property::kTitlecase});
}

bool is_title(std::string_view text) {
  bool inside = false, any = false;
  for (const char32_t c : to_utf32(text)) {
    const bool starts =
        has_property(c, Property::kUppercase) || has_property(c, Property::kTitlecase);
    const bool continues = has_property(c, Property::kLowercase);
    if ((starts && inside) || (continues && !inside)) return false;
    inside = starts || continues;
    any = any || inside;
  }
  return any;
}

}  // namespace trtmc::jinja
