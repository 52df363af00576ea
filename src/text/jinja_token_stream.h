// The parser's view of the tokens, and its guard against nesting without bounds. Private to the
// parser.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_lexer.h"

namespace trtmc::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[next_]; }
  const Token& look_ahead() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = tokens_[next_];
    if (next_ + 1 < tokens_.size()) ++next_;
    return token;
  }

  bool at(Token::Kind kind) const { return current().kind == kind; }
  bool at_operator(std::string_view text) const {
    return is(current(), Token::Kind::kOperator, text);
  }
  bool at_name(std::string_view text) const { return is(current(), Token::Kind::kName, text); }

  bool skip_operator(std::string_view text) { return at_operator(text) && (take(), true); }
  bool skip_name(std::string_view text) { return at_name(text) && (take(), true); }

  void expect_operator(std::string_view text) {
    if (!skip_operator(text)) fail_here(fmt::format("{}, expected '{}'", described(), text));
  }
  void expect_name(std::string_view text) {
    if (!skip_name(text)) fail_here(fmt::format("{}, expected '{}'", described(), text));
  }
  std::string expect_any_name() {
    if (!at(Token::Kind::kName)) fail_here(fmt::format("{}, expected a name", described()));
    return take().text;
  }
  void expect(Token::Kind kind, std::string_view what) {
    if (!at(kind)) fail_here(fmt::format("{}, expected {}", described(), what));
    take();
  }

  [[noreturn]] void fail_here(std::string message) const {
    fail_at(current().position, std::move(message));
  }
  [[noreturn]] static void fail_at(Position position, std::string message,
                                   ErrorCode code = ErrorCode::kInvalidArgument) {
    throw located({std::move(message), code}, position);
  }

  // What stands here, for a message.
  std::string described() const {
    switch (current().kind) {
      case Token::Kind::kData:
        return "text";
      case Token::Kind::kVariableBegin:
        return "'{{'";
      case Token::Kind::kVariableEnd:
        return "'}}'";
      case Token::Kind::kBlockBegin:
        return "'{%'";
      case Token::Kind::kBlockEnd:
        return "'%}'";
      case Token::Kind::kString:
        return "a string";
      case Token::Kind::kEnd:
        return "the end of the template";
      default:
        return fmt::format("'{}'", current().text);
    }
  }

  // One level of nesting, for as long as it lives.
  class Level {
   public:
    explicit Level(TokenStream& stream) : stream_(stream) {
      if (++stream_.depth_ > kMaxSyntaxDepth) stream_.fail_here("nested too deeply");
    }
    ~Level() { --stream_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenStream& stream_;
  };

 private:
  static bool is(const Token& token, Token::Kind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }

  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace trtmc::jinja
