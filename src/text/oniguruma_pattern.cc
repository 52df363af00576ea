#include "text/oniguruma_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "text/code_point_set.h"
#include "text/unicode_tables.h"

namespace trtmc {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxRepeat = 1000;

CodePointSet white_space() {
  return CodePointSet::with_properties([](uint8_t properties) { return (properties & 32) != 0; });
}

// The categories whose names begin with `name`, a letter or two; nothing for another name.
std::optional<CodePointSet> categories(std::string_view name) {
  constexpr std::string_view kNames =
      "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCoCn";
  bool known = false;
  if (name.empty() || name.size() > 2) return std::nullopt;
  const auto wanted = [&](uint8_t properties) {
    return kNames.substr(size_t{2} * (properties & 31u), 2).starts_with(name);
  };
  for (size_t i = 0; i < kNames.size(); i += 2) known |= kNames.substr(i, 2).starts_with(name);
  if (!known) return std::nullopt;
  return CodePointSet::with_properties(wanted);
}

// Oniguruma's \w: without the joiners, but with the superscripts and fractions of Latin-1.
CodePointSet word() {
  CodePointSet set = CodePointSet::with_properties([](uint8_t properties) {
                       return (properties & 64) != 0;
                     }).complement();
  set.add(0x200C, 0x200D);
  set = set.complement();
  for (const char32_t c : {U'\xB2', U'\xB3', U'\xB9', U'\xBC', U'\xBD', U'\xBE'}) set.add(c, c);
  return set;
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string translate() {
    std::string result = alternatives(0);
    if (!at_end()) invalid("a ) without its (");
    return result;
  }

 private:
  bool at_end() const { return at_ == pattern_.size(); }
  char peek() const { return at_end() ? '\0' : pattern_[at_]; }
  bool take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  [[noreturn]] void unsupported(std::string_view what) const {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("split pattern, byte {}: {} is not supported", at_, what));
  }
  [[noreturn]] void invalid(std::string_view what) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("split pattern, byte {}: {}", at_, what));
  }

  std::string alternatives(int depth) {
    if (depth > kMaxDepth) unsupported(fmt::format("nesting deeper than {}", kMaxDepth));
    std::string result;
    while (!at_end() && peek() != ')') {
      if (take("|")) {
        result += '|';
      } else {
        result += quantified(depth);
      }
    }
    return result;
  }

  std::string quantified(int depth) {
    const bool is_assertion = starts_assertion();
    std::string result = atom(depth);
    std::string_view sign = quantifier_sign();
    std::string repeat;
    if (!sign.empty()) {
      repeat = sign;
    } else if (peek() == '{') {
      repeat = interval();
    }
    if (repeat.empty()) return result;
    if (is_assertion) unsupported("a repeated assertion");
    result += repeat;
    if (sign.empty() && peek() == '+') {  // In Ruby, {n,m}+ repeats; only ?+, *+ and ++ possess.
      ++at_;
      result = "(?:" + result + ")+";
    } else if (take("?")) {
      if (repeat.starts_with("{") && repeat.find(',') == std::string::npos) unsupported("{n}?");
      result += '?';
    } else if (take("+")) {
      result += '+';
    }
    if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') {
      unsupported("a quantifier after a quantifier");
    }
    return result;
  }

  std::string_view quantifier_sign() {
    for (const std::string_view sign : {"*", "+", "?"}) {
      if (take(sign)) return sign;
    }
    return {};
  }

  // {n}, {n,}, {n,m} or {,m}.
  std::string interval() {
    take("{");
    const auto low = number();
    const bool has_comma = take(",");
    const auto high = has_comma ? number() : low;
    if (!take("}") || (!low && !high)) unsupported("a { that begins no repetition");
    if (high && *high < low.value_or(0)) invalid("a repetition whose end is below its start");
    if (!has_comma) return fmt::format("{{{}}}", *low);
    return fmt::format("{{{},{}}}", low.value_or(0), high ? std::to_string(*high) : "");
  }

  std::optional<int> number() {
    int value = 0;
    const char* begin = pattern_.data() + at_;
    const auto [end, error] = std::from_chars(begin, pattern_.data() + pattern_.size(), value);
    if (end == begin) return std::nullopt;
    if (error != std::errc() || value < 0 || value > kMaxRepeat) {
      unsupported(fmt::format("a repetition of more than {}", kMaxRepeat));
    }
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  bool starts_assertion() const {
    const std::string_view rest = pattern_.substr(at_);
    return rest.starts_with("^") || rest.starts_with("$") || rest.starts_with("(?=") ||
           rest.starts_with("(?!") || rest.starts_with("(?<") || rest.starts_with("\\A") ||
           rest.starts_with("\\z");
  }

  std::string atom(int depth) {
    if (peek() == '(') return group(depth);
    if (take("[")) return bracket().to_regex();
    if (take(".")) return "[^\\n]";
    // Lines end with \n alone, and after a last \n none begins.
    if (take("^")) return "(?:\\A|(?<=\\n)(?!\\z))";
    if (take("$")) return "(?=\\n|\\z)";
    if (take("\\A")) return "\\A";
    if (take("\\z")) return "\\z";
    if (peek() == '*' || peek() == '+' || peek() == '?') invalid("a quantifier of nothing");
    if (peek() == '{') unsupported("a { that begins no repetition");
    return element().to_regex();
  }

  std::string group(int depth) {
    constexpr std::string_view kSame[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    if (take("(?i:")) return folded_group();
    for (const std::string_view opening : kSame) {
      if (take(opening)) return std::string(opening) + closed(alternatives(depth + 1));
    }
    if (pattern_.substr(at_).starts_with("(?") || pattern_.substr(at_).starts_with("(*")) {
      unsupported(fmt::format("the group \"{}\"", pattern_.substr(at_, 3)));
    }
    take("(");
    return "(?:" + closed(alternatives(depth + 1));
  }

  std::string closed(const std::string& body) {
    if (!take(")")) invalid("a ( without its )");
    return body + ")";
  }

  // Alternatives of plain ASCII text whatever the case. Oniguruma also folds pairs of letters, as
  // "ss" to "ß": those are refused.
  std::string folded_group() {
    constexpr std::string_view kPairs[] = {"ss", "ff", "fi", "fl", "st"};
    std::string result = "(?:", letters;
    for (; !at_end() && peek() != ')'; ++at_) {
      const char c = peek();
      const auto byte = static_cast<unsigned char>(c);
      if (c == '|') {
        result += '|';
        letters.clear();
        continue;
      }
      if (byte < 0x20 || byte >= 0x7F ||
          std::string_view("\\^$.[]()*+?{}").find(c) != std::string_view::npos) {
        unsupported("(?i: around anything but plain ASCII text");
      }
      const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      letters += is_letter ? static_cast<char>(c | 0x20) : c;
      for (const std::string_view pair : kPairs) {
        if (letters.ends_with(pair)) unsupported(fmt::format("(?i: around \"{}\"", pair));
      }
      CodePointSet set;
      set.add(byte, byte);
      if (is_letter) set.add(byte ^ 0x20u, byte ^ 0x20u);
      if ((c | 0x20) == 's') set.add(0x17F, 0x17F);
      if ((c | 0x20) == 'k') set.add(0x212A, 0x212A);
      result += set.to_regex();
    }
    return closed(result);
  }

  // After the [.
  CodePointSet bracket() {
    CodePointSet set;
    const bool negated = take("^");
    if (peek() == ']') unsupported("a ] at the start of a class");
    while (!take("]")) {
      if (at_end()) invalid("a [ without its ]");
      if (peek() == '[') unsupported("a class inside a class");
      if (pattern_.substr(at_).starts_with("&&")) unsupported("&&");
      const std::string_view rest = pattern_.substr(at_);
      const CodePointSet item = element();
      const bool is_range =
          peek() == '-' && pattern_.substr(at_).size() > 1 && pattern_[at_ + 1] != ']';
      if (!is_range) {
        set.add(item);
        continue;
      }
      if (!single_) unsupported(fmt::format("a range from \"{}\"", rest.substr(0, 2)));
      const char32_t low = *single_;
      take("-");
      if (peek() == '[') unsupported("a class inside a class");
      element();
      if (!single_) unsupported("a range up to a class");
      if (*single_ < low) invalid("a range whose end is below its start");
      set.add(low, *single_);
    }
    return negated ? set.complement() : set;
  }

  // One character, escaped or not, or an escaped class. Of a character single_ keeps its value.
  CodePointSet element() {
    if (take("\\")) return escaped();
    const auto c = decode_utf8(pattern_.substr(at_));
    if (!c) invalid("not UTF-8");
    at_ += static_cast<size_t>(c->length);
    return character(c->value);
  }

  CodePointSet character(char32_t c) {
    single_ = c;
    CodePointSet set;
    set.add(c, c);
    return set;
  }

  CodePointSet escaped() {
    single_.reset();
    const char c = peek();
    if (at_end()) invalid("a \\ at the end");
    if (c == 'p' || c == 'P') return property();
    if (c == 'x' || c == 'u') return character(hexadecimal());
    ++at_;
    constexpr std::string_view kLetters = "rntfvae", kValues = "\r\n\t\f\v\a\x1B";
    if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
      return character(static_cast<unsigned char>(kValues[i]));
    }
    if (c == 's') return white_space();
    if (c == 'S') return white_space().complement();
    if (c == 'd') return *categories("Nd");
    if (c == 'D') return categories("Nd")->complement();
    if (c == 'w') return word();
    if (c == 'W') return word().complement();
    const auto byte = static_cast<unsigned char>(c);
    const bool is_sign = byte > 0x20 && byte < 0x7F && !is_letter(byte) && !is_number(byte);
    if (!is_sign && c != ' ') {
      --at_;
      unsupported(fmt::format("\\{}", byte < 0x80 ? std::string(1, c) : "…"));
    }
    return character(byte);
  }

  CodePointSet property() {
    bool negated = peek() == 'P';
    ++at_;
    if (!take("{")) unsupported("\\p without {");
    if (take("^")) negated = !negated;
    const size_t end = std::min(pattern_.find('}', at_), pattern_.size());
    const std::string_view name = pattern_.substr(at_, end - at_);
    const auto set = categories(name);
    if (!set) unsupported(fmt::format("\\p{{{}}}", name));
    at_ += name.size();
    if (!take("}")) invalid("a { without its }");
    return negated ? set->complement() : *set;
  }

  // xHH, x{H…} or uHHHH.
  char32_t hexadecimal() {
    const bool is_u = take("u");
    if (!is_u) take("x");
    const bool braces = !is_u && take("{");
    const size_t max_digits = braces ? 8 : is_u ? 4 : 2;
    uint32_t value = 0;
    const char* begin = pattern_.data() + at_;
    const char* limit = begin + std::min(max_digits, pattern_.size() - at_);
    const auto [end, error] = std::from_chars(begin, limit, value, 16);
    const auto digits = static_cast<size_t>(end - begin);
    at_ += digits;
    if (error != std::errc() || digits == 0 || (is_u && digits != 4) || (braces && !take("}"))) {
      invalid("no hexadecimal number");
    }
    if (!braces && !is_u && value > 0x7F) unsupported("\\x of a byte that is not ASCII");
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) invalid("no code point");
    return value;
  }

  std::string_view pattern_;
  size_t at_ = 0;
  std::optional<char32_t> single_;  // What element() last read, if it was one character.
};

}  // namespace

std::string pcre2_of_oniguruma(std::string_view pattern) { return Translator(pattern).translate(); }

}  // namespace trtmc
