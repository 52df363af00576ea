#include "text/jinja_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/utf8.h"
#include "text/jinja_literals.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

// \r\n and \r become \n, and one newline at the end goes.
std::string normalized(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const bool carriage_return = source[i] == '\r';
    if (carriage_return && i + 1 < source.size() && source[i + 1] == '\n') continue;
    result += carriage_return ? '\n' : source[i];
  }
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    try {
      while (offset_ < source_.size()) lex_root();
    } catch (const Failure& failure) {
      throw located(failure, position_at(failed_at_.value_or(offset_)));
    }
    add(Token::Kind::kEnd, offset_);
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(offset_); }
  char at(size_t offset) const { return offset < source_.size() ? source_[offset] : '\0'; }
  bool follows(std::string_view text, size_t offset) const {
    return source_.substr(std::min(offset, source_.size())).starts_with(text);
  }

  // Offsets mostly ascend, so lines are counted on from the last place.
  Position position_at(size_t offset) {
    if (offset < counted_) counted_ = 0, line_ = 1, line_start_ = 0;
    for (; counted_ < offset; ++counted_) {
      if (source_[counted_] == '\n') ++line_, line_start_ = counted_ + 1;
    }
    return {line_, static_cast<int>(offset - line_start_) + 1};
  }

  Token& add(Token::Kind kind, size_t offset, std::string text = {}) {
    return tokens_.emplace_back(Token{kind, position_at(offset), std::move(text), {}});
  }

  [[noreturn]] void fail_at(size_t offset, std::string message) {
    failed_at_ = offset;
    fail(std::move(message));
  }

  void skip_space() { offset_ = source_.size() - strip(rest(), kLeft).size(); }

  // Takes everything up to `end`, and remembers whether the next tag may be the first on its line.
  void consume_to(size_t end) {
    if (end > offset_) line_starting_ = source_[end - 1] == '\n';
    offset_ = end;
  }

  // The text before a tag, less the white space that `sign` ('-', '+' or none) or lstrip_blocks
  // takes.
  void add_data(size_t begin, std::string_view text, char sign, bool is_variable) {
    if (sign == '-') {
      text = strip(text, kRight);
    } else if (sign != '+' && !is_variable) {
      const size_t newline = text.rfind('\n');
      const size_t line = newline == kNowhere ? 0 : newline + 1;
      if ((line > 0 || line_starting_) && strip(text.substr(line), kBoth).empty()) {
        text = text.substr(0, line);
      }
    }
    if (!text.empty()) add(Token::Kind::kData, begin, std::string(text));
  }

  char sign_at(size_t offset) const {
    return at(offset) == '-' || at(offset) == '+' ? at(offset) : '\0';
  }

  size_t find_tag(size_t from) const {
    for (size_t i = source_.find('{', from); i != kNowhere; i = source_.find('{', i + 1)) {
      if (at(i + 1) == '{' || at(i + 1) == '%' || at(i + 1) == '#') return i;
    }
    return kNowhere;
  }

  // Data up to the next tag, and the tag.
  void lex_root() {
    const size_t begin = offset_, tag = find_tag(offset_);
    if (tag == kNowhere) {
      add(Token::Kind::kData, begin, std::string(rest()));
      offset_ = source_.size();
      return;
    }
    const char kind = at(tag + 1), sign = sign_at(tag + 2);
    add_data(begin, source_.substr(begin, tag - begin), sign, kind == '{');
    if (kind == '%') {
      if (const auto body = raw_body(tag)) {
        consume_to(*body);
        lex_raw(tag);
        return;
      }
    }
    consume_to(tag + 2 + (sign ? 1 : 0));
    if (kind == '#') {
      lex_comment(tag);
    } else {
      lex_tag(tag, kind == '{');
    }
  }

  // Where the text after a {% raw %} at `tag` begins, if there is one.
  std::optional<size_t> raw_body(size_t tag) {
    const auto after = keyword_at(tag, "raw");
    if (!after) return std::nullopt;
    if (follows("-%}", *after)) return after_space(*after + 3);
    if (follows("%}", *after)) return *after + 2;
    return std::nullopt;
  }

  size_t after_space(size_t offset) const {
    const std::string_view tail = source_.substr(offset);
    return offset + (tail.size() - strip(tail, kLeft).size());
  }

  // Behind "{%", a sign, white space, `keyword` and white space at `tag`, if they are there.
  std::optional<size_t> keyword_at(size_t tag, std::string_view keyword) const {
    const size_t start = after_space(tag + 2 + (sign_at(tag + 2) ? 1 : 0));
    if (!follows(keyword, start)) return std::nullopt;
    return after_space(start + keyword.size());
  }

  // The end of a block tag at `offset`: its size with the white space that goes with it, or 0.
  size_t block_end_size(size_t offset) const {
    if (follows("+%}", offset)) return 3;
    if (follows("-%}", offset)) return after_space(offset + 3) - offset;
    if (follows("%}", offset)) return at(offset + 2) == '\n' ? 3 : 2;
    return 0;
  }

  void lex_raw(size_t tag) {
    const size_t begin = offset_;
    for (size_t i = source_.find("{%", begin); i != kNowhere; i = source_.find("{%", i + 1)) {
      const auto after = keyword_at(i, "endraw");
      const size_t end_size = after ? block_end_size(*after) : 0;
      if (end_size == 0) continue;
      add_data(begin, source_.substr(begin, i - begin), sign_at(i + 2), false);
      consume_to(*after + end_size);
      return;
    }
    fail_at(tag, "the raw block has no {% endraw %}");
  }

  void lex_comment(size_t tag) {
    const size_t end = source_.find("#}", offset_);
    if (end == kNowhere) fail_at(tag, "the comment has no #}");
    const char sign = end > offset_ ? at(end - 1) : '\0';
    size_t next = end + 2;
    if (sign == '-') {
      next = after_space(next);
    } else if (sign != '+' && at(next) == '\n') {
      ++next;
    }
    consume_to(next);
  }

  // What stands between {{ and }}, or {% and %}.
  void lex_tag(size_t tag, bool is_variable) {
    add(is_variable ? Token::Kind::kVariableBegin : Token::Kind::kBlockBegin, tag);
    std::string open;  // Brackets that are still to be closed.
    while (true) {
      skip_space();
      if (offset_ >= source_.size()) {
        fail_at(tag, is_variable ? "the expression has no }}" : "the block has no %}");
      }
      if (open.empty() && lex_tag_end(is_variable)) return;
      if (is_digit(at(offset_))) {
        lex_number();
      } else if (is_name_start(at(offset_))) {
        lex_name();
      } else if (at(offset_) == '\'' || at(offset_) == '"') {
        lex_string();
      } else {
        lex_operator(open);
      }
    }
  }

  bool lex_tag_end(bool is_variable) {
    size_t size = 0;
    if (!is_variable) {
      size = block_end_size(offset_);
    } else if (follows("-}}", offset_)) {
      size = after_space(offset_ + 3) - offset_;
    } else if (follows("}}", offset_)) {
      size = 2;
    }
    if (size == 0) return false;
    add(is_variable ? Token::Kind::kVariableEnd : Token::Kind::kBlockEnd, offset_);
    consume_to(offset_ + size);
    return true;
  }

  void lex_name() {
    const size_t begin = offset_;
    while (is_name_start(at(offset_)) || is_digit(at(offset_))) ++offset_;
    if (at(offset_) & 0x80) fail_unsupported("a name with letters other than a-z is not supported");
    add(Token::Kind::kName, begin, std::string(source_.substr(begin, offset_ - begin)));
  }

  void lex_number() {
    const size_t size = number_size(rest(), offset_ > 0 && at(offset_ - 1) == '.');
    Value value = number_value(rest().substr(0, size));
    add(Token::Kind::kNumber, offset_, std::string(rest().substr(0, size))).value =
        std::move(value);
    offset_ += size;
  }

  void lex_string() {
    const char quote = at(offset_);
    size_t end = offset_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("the string has no closing quote");
    std::string text = unescaped(source_.substr(offset_ + 1, end - offset_ - 1));
    add(Token::Kind::kString, offset_, std::move(text));
    offset_ = end + 1;
  }

  void lex_operator(std::string& open) {
    static constexpr std::array<std::string_view, 6> kDouble = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kSingle = "+-/*%~[](){}><=.:|,;";
    std::string_view text = rest().substr(0, 2);
    if (std::find(kDouble.begin(), kDouble.end(), text) == kDouble.end())
      text = rest().substr(0, 1);
    if (text.size() == 1 && kSingle.find(text) == kNowhere) {
      const auto code_point = decode_utf8(rest());
      const size_t length = code_point ? static_cast<size_t>(code_point->length) : 1;
      fail(fmt::format("unexpected character '{}'", rest().substr(0, length)));
    }
    balance(text, open);
    add(Token::Kind::kOperator, offset_, std::string(text));
    offset_ += text.size();
  }

  static void balance(std::string_view text, std::string& open) {
    if (text == "(") open += ')';
    if (text == "[") open += ']';
    if (text == "{") open += '}';
    if (text != ")" && text != "]" && text != "}") return;
    if (open.empty()) fail(fmt::format("unexpected '{}'", text));
    if (open.back() != text[0]) {
      fail(fmt::format("unexpected '{}', expected '{}'", text, open.back()));
    }
    open.pop_back();
  }

  std::string_view source_;
  size_t offset_ = 0;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
  std::optional<size_t> failed_at_;
  // Of position_at().
  size_t counted_ = 0, line_start_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the template has {} bytes, expected at most {}", source.size(),
                            kMaxSourceBytes));
  }
  if (const auto offset = find_invalid_utf8(source)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("byte {}: the template is not UTF-8", *offset));
  }
  const std::string text = normalized(source);
  return Lexer(text).run();
}

}  // namespace trtmc::jinja
