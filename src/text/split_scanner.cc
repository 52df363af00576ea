#include "text/split_scanner.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "text/unicode_tables.h"

namespace trtmc {
namespace {

enum class CharClass : uint8_t { kOther, kLetter, kNumber, kSpace, kLineEnd };

constexpr std::array<CharClass, 128> make_ascii_classes() {
  std::array<CharClass, 128> classes{};
  for (size_t c = 0; c < classes.size(); ++c) {
    if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) classes[c] = CharClass::kLetter;
    if (c >= '0' && c <= '9') classes[c] = CharClass::kNumber;
    if (c == ' ' || (c >= '\t' && c <= '\r')) classes[c] = CharClass::kSpace;
    if (c == '\r' || c == '\n') classes[c] = CharClass::kLineEnd;
  }
  return classes;
}

constexpr std::array<CharClass, 128> kAsciiClasses = make_ascii_classes();

CharClass class_of(char32_t c) {
  if (is_letter(c)) return CharClass::kLetter;
  if (is_number(c)) return CharClass::kNumber;
  return is_white_space(c) ? CharClass::kSpace : CharClass::kOther;
}

struct Char {
  CharClass kind;
  size_t length;  // In bytes; 0 at the end of the text.
};

// The character at `at`. The text is known to be UTF-8, so its first byte tells the length.
inline Char char_at(std::string_view text, size_t at) {
  if (at >= text.size()) return {CharClass::kOther, 0};
  const auto byte = [&](size_t i) -> char32_t { return static_cast<unsigned char>(text[at + i]); };
  const char32_t first = byte(0);
  if (first < 0x80) return {kAsciiClasses[first], 1};
  if (first < 0xE0) return {class_of((first & 0x1F) << 6 | (byte(1) & 0x3F)), 2};
  if (first < 0xF0) {
    return {class_of((first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F)), 3};
  }
  return {class_of((first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
                   (byte(3) & 0x3F)),
          4};
}

// The end of the run of `kind` that goes on at `at`, of at most `max_count` characters.
inline size_t run_end(std::string_view text, size_t at, CharClass kind,
                      size_t max_count = static_cast<size_t>(-1)) {
  while (max_count-- > 0) {
    const Char c = char_at(text, at);
    if (c.length == 0 || c.kind != kind) break;
    at += c.length;
  }
  return at;
}

size_t line_ends_end(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == '\r' || text[at] == '\n')) ++at;
  return at;
}

// 's|'t|'re|'ve|'m|'ll|'d after the apostrophe at `at`: the end, or `at` if there is none. With
// `any_case` as (?i:…) folds it, where U+017F is an s.
size_t contraction_end(std::string_view text, size_t at, bool any_case) {
  const std::string_view rest = text.substr(at + 1, 2);
  if (rest.empty()) return at;
  if (any_case && rest == "\u017F") return at + 3;
  const auto letter = [&](size_t i) {
    const char c = i < rest.size() ? rest[i] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  const char first = letter(0), second = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  const bool pair = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                    (first == 'l' && second == 'l');
  return pair ? at + 3 : at;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ at white space, the first alternative only where `ends_at_line`: up to
// the last line end of the run, else all of a run that ends the text, else all but its last
// character, which then leads what follows.
size_t white_space_end(std::string_view text, size_t begin, bool ends_at_line) {
  size_t end = begin, last_begin = begin, after_line_end = begin;
  for (Char c = char_at(text, end);
       c.length != 0 && (c.kind == CharClass::kSpace || c.kind == CharClass::kLineEnd);
       c = char_at(text, end)) {
    last_begin = end;
    end += c.length;
    if (c.kind == CharClass::kLineEnd) after_line_end = end;
  }
  if (ends_at_line && after_line_end != begin) return after_line_end;
  return end == text.size() || last_begin == begin ? end : last_begin;
}

size_t gpt2_match_end(std::string_view text, size_t begin, size_t max_number) {
  const Char first = char_at(text, begin);
  if (text[begin] == '\'') {
    const size_t end = contraction_end(text, begin, false);
    if (end != begin) return end;
  }
  const size_t body = begin + (text[begin] == ' ' ? 1 : 0);
  const Char lead = body == begin ? first : char_at(text, body);
  const bool is_space = lead.kind == CharClass::kSpace || lead.kind == CharClass::kLineEnd;
  if (lead.length == 0 || is_space) return white_space_end(text, begin, false);
  return run_end(text, body, lead.kind,
                 lead.kind == CharClass::kNumber ? max_number : static_cast<size_t>(-1));
}

}  // namespace

size_t SplitScanner::match_end(std::string_view text, size_t begin) const {
  if (is_gpt2) return gpt2_match_end(text, begin, max_number);
  const Char first = char_at(text, begin);
  if (first.kind == CharClass::kLetter) {
    return run_end(text, begin + first.length, CharClass::kLetter);
  }
  if (first.kind == CharClass::kNumber) return run_end(text, begin, CharClass::kNumber, max_number);
  if (text[begin] == '\'') {
    const size_t end = contraction_end(text, begin, true);
    if (end != begin) return end;
  }
  const size_t after = begin + first.length;
  const Char second = char_at(text, after);
  if (first.kind != CharClass::kLineEnd && second.length != 0 &&
      second.kind == CharClass::kLetter) {
    return run_end(text, after, CharClass::kLetter);
  }
  const bool leads_others =
      text[begin] == ' ' && second.length != 0 && second.kind == CharClass::kOther;
  if (first.kind == CharClass::kOther || leads_others) {
    return line_ends_end(text, run_end(text, after, CharClass::kOther));
  }
  return white_space_end(text, begin, true);
}

std::optional<SplitScanner> find_split_scanner(std::string_view pattern) {
  constexpr std::string_view kGpt2 =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kBeforeNumbers =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
  constexpr std::string_view kAfterNumbers =
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (pattern == kGpt2) return kGpt2Scanner;
  if (!pattern.starts_with(kBeforeNumbers) || !pattern.ends_with(kAfterNumbers) ||
      pattern.size() < kBeforeNumbers.size() + kAfterNumbers.size()) {
    return std::nullopt;
  }
  const std::string_view numbers = pattern.substr(
      kBeforeNumbers.size(), pattern.size() - kBeforeNumbers.size() - kAfterNumbers.size());
  if (numbers == R"(\p{N}{1,3})") return SplitScanner{false, 3};
  if (numbers == R"(\p{N})") return SplitScanner{false, 1};
  if (numbers == R"(\p{N}+)") return SplitScanner{false, static_cast<size_t>(-1)};
  return std::nullopt;
}

}  // namespace trtmc
