// What CPython 3.11 knows of each code point (Unicode 14.0), as far as str's methods and repr()
// need it. The tables are made by tools/gen_python_unicode.py.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace trtmc::jinja {

enum class Property : uint8_t {
  kPrintable,
  kAlphabetic,
  kDecimal,
  kDigit,
  kNumeric,
  kSpace,
  kUppercase,
  kLowercase,
  kTitlecase,
  kCaseIgnorable,
};

enum class Case : uint8_t { kUpper, kLower, kTitle };

// An inclusive range; the ranges of a property ascend.
struct CodePointRange {
  char32_t low, high;
};

// To one to three code points, the rest is zero. A code point without a mapping maps to itself.
struct CaseMapping {
  char32_t from;
  char32_t to[3];
};

std::span<const CodePointRange> property_ranges(Property property);
std::span<const CaseMapping> case_mappings(Case to);

bool has_property(char32_t code_point, Property property);
bool is_cased(char32_t code_point);
// Without context, which only a final sigma has.
void append_mapped(std::u32string& text, char32_t code_point, Case to);

}  // namespace trtmc::jinja
