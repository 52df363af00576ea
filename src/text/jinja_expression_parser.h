// The expressions of Jinja's grammar. Private to the parser.
#pragma once

#include <initializer_list>

#include "text/jinja_ast.h"
#include "text/jinja_token_stream.h"

namespace trtmc::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  // One expression; without `conditional`, `a if b` is left alone.
  ExpressionPtr expression(bool conditional = true);
  // Expressions between commas are a tuple; `end_name` is a name that ends it.
  ExpressionPtr tuple(bool conditional = true, std::string_view end_name = {});
  // What may stand left of an equals sign or behind `for`.
  ExpressionPtr target(bool with_namespace = false, std::string_view end_name = {});
  ExpressionPtr name_target();
  // `| a | b(c)` behind `input`, or `a | b(c)` at the start of a filter block.
  ExpressionPtr filters(ExpressionPtr input, bool starts_inline);

 private:
  using Level = TokenStream::Level;

  // A vector of move-only values has no initialiser list.
  template <typename... Nodes>
  static std::vector<ExpressionPtr> operands(Nodes... nodes) {
    std::vector<ExpressionPtr> result;
    (result.push_back(std::move(nodes)), ...);
    return result;
  }
  static ExpressionPtr make(ExpressionKind kind, Position position,
                            std::vector<ExpressionPtr> children = {});
  // Sets the tree's depth and refuses one too deep.
  static ExpressionPtr finished(ExpressionPtr node);

  template <typename ParseItem>
  ExpressionPtr tuple_of(const ParseItem& item, std::string_view end_name,
                         bool explicit_parentheses);
  template <typename ParseOperand>
  ExpressionPtr left_associative(std::initializer_list<std::string_view> operators,
                                 const ParseOperand& operand);
  bool at_tuple_end(std::string_view end_name) const;
  void check_target(const Expression& node) const;

  ExpressionPtr conditional_expression();
  ExpressionPtr or_expression();
  ExpressionPtr and_expression();
  ExpressionPtr not_expression();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary(bool with_namespace = false);
  ExpressionPtr name(bool with_namespace);
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filters_and_tests(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr item(ExpressionPtr node, Position position);
  ExpressionPtr call(ExpressionPtr node);
  ExpressionPtr filter(ExpressionPtr input);
  ExpressionPtr test(ExpressionPtr node);
  bool at_test_argument() const;
  CallArguments call_arguments();
  void argument(CallArguments& arguments, Position position);
  std::string dotted_name();

  TokenStream& tokens_;
};

}  // namespace trtmc::jinja
