#include "text/jinja_expression_parser.h"

#include <algorithm>

#include "text/jinja_filters.h"
#include "text/jinja_tests.h"

namespace trtmc::jinja {
namespace {

using Kind = ExpressionKind;

// A vector of move-only values has no initialiser list.
template <typename... Nodes>
std::vector<ExpressionPtr> operands(Nodes... nodes) {
  std::vector<ExpressionPtr> result;
  (result.push_back(std::move(nodes)), ...);
  return result;
}

}  // namespace

ExpressionPtr ExpressionParser::make(Kind kind, Position position,
                                     std::vector<ExpressionPtr> operands) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->position = position;
  node->operands = std::move(operands);
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

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  while (true) {
    if (tokens_.at_operator(".") || tokens_.at_operator("[")) {
      node = subscript(std::move(node));
    } else if (tokens_.at_operator("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (tokens_.skip_operator("|")) {
      node = filter(std::move(node));
    } else if (tokens_.at_name("is")) {
      node = test(std::move(node));
    } else if (tokens_.at_operator("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr node) {
  const Token& token = tokens_.take();
  if (token.text == "[") return item(std::move(node), token.position);
  if (tokens_.at(Token::Kind::kName)) {
    ExpressionPtr result = make(Kind::kAttribute, token.position, operands(std::move(node)));
    result->name = tokens_.take().text;
    return result;
  }
  if (!tokens_.at(Token::Kind::kNumber) || !tokens_.current().value.integer()) {
    tokens_.fail_here(fmt::format("{}, expected a name or a number", tokens_.described()));
  }
  ExpressionPtr index = primary();
  return make(Kind::kItem, token.position, operands(std::move(node), std::move(index)));
}

ExpressionPtr ExpressionParser::item(ExpressionPtr node, Position position) {
  std::vector<ExpressionPtr> parts = operands(std::move(node));
  const auto at_end = [&] { return tokens_.at_operator("]") || tokens_.at_operator(","); };
  const auto part = [&] {
    parts.push_back(tokens_.at_operator(":") || at_end() ? nullptr : expression());
  };
  part();
  if (!tokens_.at_operator(":")) {
    if (!parts[1]) tokens_.fail_here(fmt::format("unexpected {}", tokens_.described()));
    if (tokens_.at_operator(",")) {  // x[a, b] takes the tuple (a, b).
      std::vector<ExpressionPtr> items = operands(std::move(parts[1]));
      while (tokens_.skip_operator(",") && !tokens_.at_operator("]")) items.push_back(expression());
      parts[1] = make(Kind::kTuple, position, std::move(items));
    }
    tokens_.expect_operator("]");
    return make(Kind::kItem, position, std::move(parts));
  }
  tokens_.take();
  part();
  if (tokens_.skip_operator(":")) {
    part();
  } else {
    parts.push_back(nullptr);
  }
  tokens_.expect_operator("]");
  return make(Kind::kSlice, position, std::move(parts));
}

ExpressionPtr ExpressionParser::call(ExpressionPtr node) {
  ExpressionPtr result = make(Kind::kCall, tokens_.current().position, operands(std::move(node)));
  result->call = call_arguments();
  return finished(std::move(result));
}

CallArguments ExpressionParser::call_arguments() {
  const Position position = tokens_.current().position;
  tokens_.expect_operator("(");
  CallArguments arguments;
  while (!tokens_.at_operator(")")) {
    argument(arguments, position);
    if (!tokens_.skip_operator(",")) break;
  }
  tokens_.expect_operator(")");
  return arguments;
}

void ExpressionParser::argument(CallArguments& arguments, Position position) {
  const auto require = [&](bool condition) {
    if (!condition) TokenStream::fail_at(position, "the arguments are out of order");
  };
  if (tokens_.skip_operator("*")) {
    require(!arguments.star && !arguments.double_star);
    arguments.star = expression();
  } else if (tokens_.skip_operator("**")) {
    require(!arguments.double_star);
    arguments.double_star = expression();
  } else if (tokens_.at(Token::Kind::kName) &&
             tokens_.look_ahead().kind == Token::Kind::kOperator &&
             tokens_.look_ahead().text == "=") {
    require(!arguments.double_star);
    std::string key = tokens_.take().text;
    tokens_.take();
    const auto same = [&](const auto& named) { return named.first == key; };
    if (std::any_of(arguments.named.begin(), arguments.named.end(), same)) {
      TokenStream::fail_at(position, fmt::format("the argument '{}' is given twice", key));
    }
    arguments.named.emplace_back(std::move(key), expression());
  } else {
    require(!arguments.star && !arguments.double_star && arguments.named.empty());
    arguments.positional.push_back(expression());
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect_any_name();
  while (tokens_.skip_operator(".")) name += "." + tokens_.expect_any_name();
  return name;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr input, bool starts_inline) {
  if (starts_inline) input = filter(std::move(input));
  while (tokens_.skip_operator("|")) input = filter(std::move(input));
  return input;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr input) {
  ExpressionPtr node = make(Kind::kFilter, tokens_.current().position, operands(std::move(input)));
  node->name = dotted_name();
  node->filter = find_filter(node->name);
  if (!node->filter) {
    TokenStream::fail_at(node->position,
                         fmt::format("the filter '{}' is not supported", node->name),
                         ErrorCode::kUnsupported);
  }
  if (tokens_.at_operator("(")) node->call = call_arguments();
  return finished(std::move(node));
}

bool ExpressionParser::at_test_argument() const {
  switch (tokens_.current().kind) {
    case Token::Kind::kName:
      return !tokens_.at_name("else") && !tokens_.at_name("or") && !tokens_.at_name("and");
    case Token::Kind::kString:
    case Token::Kind::kNumber:
      return true;
    default:
      return tokens_.at_operator("[") || tokens_.at_operator("{");
  }
}

ExpressionPtr ExpressionParser::test(ExpressionPtr subject) {
  const Position position = tokens_.take().position;
  const bool negated = tokens_.skip_name("not");
  ExpressionPtr node = make(Kind::kTest, tokens_.current().position, operands(std::move(subject)));
  node->name = dotted_name();
  node->test = find_test(node->name);
  if (!node->test) {
    TokenStream::fail_at(node->position, fmt::format("the test '{}' is not supported", node->name),
                         ErrorCode::kUnsupported);
  }
  if (tokens_.at_operator("(")) {
    node->call = call_arguments();
  } else if (at_test_argument()) {
    if (tokens_.at_name("is")) tokens_.fail_here("tests can't be chained with 'is'");
    ExpressionPtr argument = primary();
    node->call.positional.push_back(postfix(std::move(argument)));
  }
  node = finished(std::move(node));
  return negated ? make(Kind::kNot, position, operands(std::move(node))) : std::move(node);
}

}  // namespace trtmc::jinja
