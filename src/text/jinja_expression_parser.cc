#include "text/jinja_expression_parser.h"

#include <algorithm>

namespace trtmc::jinja {
namespace {

using Kind = ExpressionKind;

}  // namespace

ExpressionPtr ExpressionParser::make(Kind kind, Position position,
                                     std::vector<ExpressionPtr> children) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->position = position;
  node->operands = std::move(children);
  return finished(std::move(node));
}

ExpressionPtr ExpressionParser::finished(ExpressionPtr node) {
  const auto take_in = [&](const ExpressionPtr& child) {
    if (child) node->depth = std::max(node->depth, child->depth + 1);
  };
  for (const auto& operand : node->operands) take_in(operand);
  for (const auto& argument : node->call.positional) take_in(argument);
  for (const auto& argument : node->call.named) take_in(argument.second);
  take_in(node->call.star);
  take_in(node->call.double_star);
  if (node->depth > kMaxSyntaxDepth) {
    TokenStream::fail_at(node->position, "the expression is nested too deeply");
  }
  return node;
}

ExpressionPtr ExpressionParser::expression(bool conditional) {
  const Level level(tokens_);
  return conditional ? conditional_expression() : or_expression();
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  return tokens_.at(Token::Kind::kVariableEnd) || tokens_.at(Token::Kind::kBlockEnd) ||
         tokens_.at_operator(")") || (!end_name.empty() && tokens_.at_name(end_name));
}

template <typename ParseItem>
ExpressionPtr ExpressionParser::tuple_of(const ParseItem& parse_item, std::string_view end_name,
                                         bool explicit_parentheses) {
  const Position position = tokens_.current().position;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!at_tuple_end(end_name)) {
    items.push_back(parse_item());
    if (!tokens_.skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items[0]);
    if (!explicit_parentheses) {
      tokens_.fail_here(fmt::format("{}, expected an expression", tokens_.described()));
    }
  }
  return make(Kind::kTuple, position, std::move(items));
}

ExpressionPtr ExpressionParser::tuple(bool conditional, std::string_view end_name) {
  return tuple_of([&] { return expression(conditional); }, end_name, false);
}

ExpressionPtr ExpressionParser::target(bool with_namespace, std::string_view end_name) {
  ExpressionPtr node = tuple_of([&] { return primary(with_namespace); }, end_name, false);
  check_target(*node);
  return node;
}

ExpressionPtr ExpressionParser::name_target() {
  if (!tokens_.at(Token::Kind::kName)) tokens_.expect_any_name();
  ExpressionPtr node = name(false);
  check_target(*node);
  return node;
}

void ExpressionParser::check_target(const Expression& node) const {
  if (node.kind == Kind::kName || node.kind == Kind::kNamespace) return;
  if (node.kind != Kind::kTuple) {
    TokenStream::fail_at(node.position, "this can't be assigned to, expected a name");
  }
  for (const auto& item : node.operands) check_target(*item);
}

ExpressionPtr ExpressionParser::conditional_expression() {
  Position position = tokens_.current().position;
  ExpressionPtr node = or_expression();
  while (tokens_.skip_name("if")) {
    ExpressionPtr condition = or_expression();
    ExpressionPtr otherwise;
    if (tokens_.skip_name("else")) otherwise = expression();
    node = make(Kind::kConditional, position,
                operands(std::move(condition), std::move(node), std::move(otherwise)));
    position = tokens_.current().position;
  }
  return node;
}

ExpressionPtr ExpressionParser::or_expression() {
  ExpressionPtr node = and_expression();
  while (tokens_.at_name("or")) {
    const Position position = tokens_.take().position;
    ExpressionPtr right = and_expression();
    node = make(Kind::kOr, position, operands(std::move(node), std::move(right)));
  }
  return node;
}

ExpressionPtr ExpressionParser::and_expression() {
  ExpressionPtr node = not_expression();
  while (tokens_.at_name("and")) {
    const Position position = tokens_.take().position;
    ExpressionPtr right = not_expression();
    node = make(Kind::kAnd, position, operands(std::move(node), std::move(right)));
  }
  return node;
}

ExpressionPtr ExpressionParser::not_expression() {
  if (!tokens_.at_name("not")) return comparison();
  const Level level(tokens_);
  const Position position = tokens_.take().position;
  return make(Kind::kNot, position, operands(not_expression()));
}

ExpressionPtr ExpressionParser::comparison() {
  static constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  const Position position = tokens_.current().position;
  std::vector<ExpressionPtr> terms = operands(sum());
  std::vector<std::string> names;
  while (true) {
    const Token& token = tokens_.current();
    if (token.kind == Token::Kind::kOperator &&
        std::find(std::begin(kOperators), std::end(kOperators), token.text) !=
            std::end(kOperators)) {
      names.push_back(tokens_.take().text);
    } else if (tokens_.skip_name("in")) {
      names.push_back("in");
    } else if (tokens_.at_name("not") && tokens_.look_ahead().text == "in" &&
               tokens_.look_ahead().kind == Token::Kind::kName) {
      tokens_.take();
      tokens_.take();
      names.push_back("not in");
    } else {
      break;
    }
    terms.push_back(sum());
  }
  if (names.empty()) return std::move(terms[0]);
  ExpressionPtr node = make(Kind::kCompare, position, std::move(terms));
  node->names = std::move(names);
  return node;
}

template <typename ParseOperand>
ExpressionPtr ExpressionParser::left_associative(std::initializer_list<std::string_view> operators,
                                                 const ParseOperand& operand) {
  ExpressionPtr node = operand();
  while (tokens_.at(Token::Kind::kOperator) &&
         std::find(operators.begin(), operators.end(), tokens_.current().text) != operators.end()) {
    const Token& token = tokens_.take();
    ExpressionPtr right = operand();
    node = make(Kind::kBinary, token.position, operands(std::move(node), std::move(right)));
    node->name = token.text;
  }
  return node;
}

ExpressionPtr ExpressionParser::sum() {
  return left_associative({"+", "-"}, [&] { return concatenation(); });
}

ExpressionPtr ExpressionParser::concatenation() {
  const Position position = tokens_.current().position;
  std::vector<ExpressionPtr> terms = operands(product());
  while (tokens_.skip_operator("~")) terms.push_back(product());
  if (terms.size() == 1) return std::move(terms[0]);
  return make(Kind::kConcat, position, std::move(terms));
}

ExpressionPtr ExpressionParser::product() {
  return left_associative({"*", "/", "//", "%"}, [&] { return power(); });
}

ExpressionPtr ExpressionParser::power() {
  return left_associative({"**"}, [&] { return unary(); });
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Level level(tokens_);
  ExpressionPtr node;
  if (tokens_.at_operator("-") || tokens_.at_operator("+")) {
    const Token& token = tokens_.take();
    node = make(Kind::kUnary, token.position, operands(unary(false)));
    node->name = token.text;
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::primary(bool with_namespace) {
  const Token& token = tokens_.current();
  ExpressionPtr node;
  if (token.kind == Token::Kind::kName) return name(with_namespace);
  if (token.kind == Token::Kind::kString) {
    std::string text;
    while (tokens_.at(Token::Kind::kString)) text += tokens_.take().text;
    node = make(Kind::kConstant, token.position);
    node->value = Value(std::move(text));
    return node;
  }
  if (token.kind == Token::Kind::kNumber) {
    node = make(Kind::kConstant, token.position);
    node->value = tokens_.take().value;
    return node;
  }
  if (tokens_.skip_operator("(")) {
    const Level level(tokens_);
    node = tuple_of([&] { return expression(); }, {}, true);
    tokens_.expect_operator(")");
    return node;
  }
  if (tokens_.at_operator("[")) return list();
  if (tokens_.at_operator("{")) return dict();
  tokens_.fail_here(fmt::format("unexpected {}", tokens_.described()));
}

ExpressionPtr ExpressionParser::name(bool with_namespace) {
  const Token& token = tokens_.take();
  ExpressionPtr node = make(Kind::kConstant, token.position);
  if (token.text == "true" || token.text == "True") {
    node->value = true;
  } else if (token.text == "false" || token.text == "False") {
    node->value = false;
  } else if (token.text == "none" || token.text == "None") {
    node->value = None{};
  } else {
    node->kind = Kind::kName;
    node->name = token.text;
    if (with_namespace && tokens_.skip_operator(".")) {
      node->kind = Kind::kNamespace;
      node->attribute = tokens_.expect_any_name();
    }
  }
  return node;
}

ExpressionPtr ExpressionParser::list() {
  const Position position = tokens_.take().position;
  std::vector<ExpressionPtr> items;
  while (!tokens_.at_operator("]")) {
    items.push_back(expression());
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("]");
  return make(Kind::kList, position, std::move(items));
}

ExpressionPtr ExpressionParser::dict() {
  const Position position = tokens_.take().position;
  std::vector<ExpressionPtr> items;
  while (!tokens_.at_operator("}")) {
    items.push_back(expression());
    tokens_.expect_operator(":");
    items.push_back(expression());
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator("}");
  return make(Kind::kDict, position, std::move(items));
}

}  // namespace trtmc::jinja
