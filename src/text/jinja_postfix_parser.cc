// What follows an operand: attributes, items, calls, filters and tests.
#include <algorithm>

#include "text/jinja_expression_parser.h"
#include "text/jinja_filters.h"
#include "text/jinja_limits.h"
#include "text/jinja_tests.h"

namespace trtmc::jinja {
namespace {

using Kind = ExpressionKind;

}  // namespace

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
      while (tokens_.skip_operator(",")) items.push_back(expression());
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
    if (arguments.named.size() == kMaxNames) {
      TokenStream::fail_at(position, "the call has too many named arguments");
    }
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
