#include "text/jinja_parser.h"

#include <algorithm>
#include <initializer_list>

#include "text/jinja_expression_parser.h"
#include "text/jinja_limits.h"
#include "text/jinja_scopes.h"
#include "text/jinja_token_stream.h"

namespace trtmc::jinja {
namespace {

using Kind = StatementKind;
using StatementPtr = std::unique_ptr<Statement>;
using EndNames = std::initializer_list<std::string_view>;

// Of a target: a name, a namespace's attribute, or a tuple of them.
ExpressionPtr clone_target(const Expression& target) {
  auto copy = std::make_unique<Expression>();
  copy->kind = target.kind;
  copy->position = target.position;
  copy->name = target.name;
  copy->attribute = target.attribute;
  for (const auto& item : target.operands) copy->operands.push_back(clone_target(*item));
  return copy;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Template run() {
    Template tree;
    tree.body = body({});
    resolve_names(tree);
    return tree;
  }

 private:
  StatementPtr make(Kind kind, Position position) {
    auto node = std::make_unique<Statement>();
    node->kind = kind;
    node->position = position;
    return node;
  }

  void end_block() { tokens_.expect(Token::Kind::kBlockEnd, "'%}'"); }

  // Statements up to a block that starts with one of `ends`, which is left to be read from its name
  // on; up to the end of the template if there are none.
  Body body(EndNames ends) {
    const TokenStream::Level level(tokens_);
    Body result;
    while (!tokens_.at(Token::Kind::kEnd)) {
      const Token& token = tokens_.take();
      if (token.kind == Token::Kind::kData) {
        result.push_back(make(Kind::kText, token.position));
        result.back()->text = token.text;
      } else if (token.kind == Token::Kind::kVariableBegin) {
        result.push_back(make(Kind::kPrint, token.position));
        result.back()->value = expressions_.tuple();
        tokens_.expect(Token::Kind::kVariableEnd, "'}}'");
      } else {
        if (at_one_of(ends)) return result;
        add_statement(result);
        end_block();
      }
    }
    if (ends.size() > 0) tokens_.fail_here(fmt::format("'{}' is missing", *(ends.end() - 1)));
    return result;
  }

  bool at_one_of(EndNames names) const {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return tokens_.at_name(name); });
  }

  // The body of the block whose tag ends here, without its end tag's name.
  Body block_body(std::string_view end) {
    Body result = block_body_until({end});
    tokens_.expect_name(end);
    return result;
  }
  Body block_body_until(EndNames ends) {
    tokens_.skip_operator(":");
    end_block();
    return body(ends);
  }

  void add_statement(Body& out) {
    if (!tokens_.at(Token::Kind::kName)) {
      tokens_.fail_here(fmt::format("{}, expected the name of a statement", tokens_.described()));
    }
    const std::string name = tokens_.current().text;
    const Position position = tokens_.take().position;
    if (name == "print") return add_print(out, position);
    StatementPtr node = statement(name, position);
    node->position = position;
    out.push_back(std::move(node));
  }

  StatementPtr statement(const std::string& name, Position position) {
    if (name == "if") return parse_if();
    if (name == "for") return parse_for();
    if (name == "set") return parse_set();
    if (name == "with") return parse_with();
    if (name == "filter") return parse_filter_block();
    if (name == "generation") return parse_generation();
    if (name == "macro") return parse_macro();
    if (name == "call") return parse_call();
    if (name == "break") return parse_loop_control(Kind::kBreak, name, position);
    if (name == "continue") return parse_loop_control(Kind::kContinue, name, position);
    if (name.starts_with("end") || name == "else" || name == "elif") {
      TokenStream::fail_at(position, fmt::format("unexpected '{}'", name));
    }
    TokenStream::fail_at(position, fmt::format("the statement '{}' is not supported", name),
                         ErrorCode::kUnsupported);
  }

  void add_print(Body& out, Position position) {
    bool first = true;
    while (!tokens_.at(Token::Kind::kBlockEnd)) {
      if (!first) tokens_.expect_operator(",");
      first = false;
      out.push_back(make(Kind::kPrint, position));
      out.back()->value = expressions_.expression();
    }
  }

  StatementPtr parse_if() {
    StatementPtr node = make(Kind::kIf, {});
    while (true) {
      Branch branch;
      branch.condition = expressions_.tuple(false);
      branch.body = block_body_until({"elif", "else", "endif"});
      node->branches.push_back(std::move(branch));
      if (tokens_.skip_name("elif")) continue;
      if (tokens_.skip_name("else")) {
        node->otherwise = block_body("endif");
      } else {
        tokens_.expect_name("endif");
      }
      return node;
    }
  }

  StatementPtr parse_for() {
    StatementPtr node = make(Kind::kFor, {});
    node->target = expressions_.target(false, "in");
    tokens_.expect_name("in");
    node->value = expressions_.tuple(false, "recursive");
    if (tokens_.skip_name("if")) {
      node->condition = expressions_.expression();
      node->condition_target = clone_target(*node->target);
    }
    node->recursive = tokens_.skip_name("recursive");
    ++loops_;
    node->body = block_body_until({"else", "endfor"});
    --loops_;
    if (tokens_.skip_name("else")) {
      node->otherwise = block_body("endfor");
    } else {
      tokens_.expect_name("endfor");
    }
    return node;
  }

  StatementPtr parse_set() {
    StatementPtr node = make(Kind::kSet, {});
    node->target = expressions_.target(true);
    if (tokens_.skip_operator("=")) {
      node->value = expressions_.tuple();
    } else {
      node->kind = Kind::kSetBlock;
      node->value = expressions_.filters(nullptr, false);
      node->body = block_body("endset");
    }
    return node;
  }

  StatementPtr parse_with() {
    StatementPtr node = make(Kind::kWith, {});
    while (!tokens_.at(Token::Kind::kBlockEnd)) {
      if (!node->targets.empty()) tokens_.expect_operator(",");
      node->targets.push_back(expressions_.target());
      tokens_.expect_operator("=");
      node->values.push_back(expressions_.expression());
    }
    node->body = block_body("endwith");
    return node;
  }

  StatementPtr parse_filter_block() {
    StatementPtr node = make(Kind::kFilterBlock, {});
    node->value = expressions_.filters(nullptr, true);
    node->body = block_body("endfilter");
    return node;
  }

  // A function's body: break and continue do not reach out of it.
  Body function_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body result = block_body(end);
    loops_ = loops;
    return result;
  }

  StatementPtr parse_generation() {
    StatementPtr node = make(Kind::kGeneration, {});
    node->body = function_body("endgeneration");
    return node;
  }

  StatementPtr parse_macro() {
    StatementPtr node = make(Kind::kMacro, {});
    node->name = expressions_.name_target()->name;
    node->parameters = parameters();
    node->body = function_body("endmacro");
    return node;
  }

  StatementPtr parse_call() {
    StatementPtr node = make(Kind::kCallBlock, {});
    if (tokens_.at_operator("(")) node->parameters = parameters();
    node->value = expressions_.expression();
    if (node->value->kind != ExpressionKind::kCall) {
      TokenStream::fail_at(node->value->position, "a call block needs a call");
    }
    node->body = function_body("endcall");
    return node;
  }

  std::vector<Parameter> parameters() {
    std::vector<Parameter> result;
    tokens_.expect_operator("(");
    while (!tokens_.at_operator(")")) {
      if (!result.empty()) tokens_.expect_operator(",");
      if (result.size() == kMaxNames) tokens_.fail_here("the macro has too many parameters");
      Parameter parameter;
      parameter.name = expressions_.name_target()->name;
      if (tokens_.skip_operator("=")) {
        parameter.default_value = expressions_.expression();
      } else if (!result.empty() && result.back().default_value) {
        tokens_.fail_here("a parameter without a default follows one with a default");
      }
      const auto same = [&](const Parameter& other) { return other.name == parameter.name; };
      if (std::any_of(result.begin(), result.end(), same)) {
        tokens_.fail_here(fmt::format("the parameter '{}' is there twice", parameter.name));
      }
      result.push_back(std::move(parameter));
    }
    tokens_.expect_operator(")");
    return result;
  }

  StatementPtr parse_loop_control(Kind kind, const std::string& name, Position position) {
    if (loops_ == 0) TokenStream::fail_at(position, fmt::format("'{}' outside a loop", name));
    return make(kind, position);
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int loops_ = 0;  // Around the statement, within its function.
};

}  // namespace

Template parse(std::string_view source) { return Parser(tokenize(source)).run(); }

}  // namespace trtmc::jinja
