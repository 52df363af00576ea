#include "text/jinja_parser.h"

#include <gtest/gtest.h>

namespace trtmc::jinja {
namespace {

using Kind = ExpressionKind;

// An expression with all its brackets, in the order of evaluation.
std::string bracketed(const Expression& node) {
  const auto operand = [&](size_t i) { return bracketed(*node.operands[i]); };
  switch (node.kind) {
    case Kind::kName:
      return node.name;
    case Kind::kConstant:
      return node.value.integer() ? std::to_string(*node.value.integer()) : "?";
    case Kind::kUnary:
      return "(" + node.name + operand(0) + ")";
    case Kind::kBinary:
      return "(" + operand(0) + node.name + operand(1) + ")";
    case Kind::kConcat: {
      std::string result = "(" + operand(0);
      for (size_t i = 1; i < node.operands.size(); ++i) result += "~" + operand(i);
      return result + ")";
    }
    case Kind::kAnd:
      return "(" + operand(0) + " and " + operand(1) + ")";
    case Kind::kOr:
      return "(" + operand(0) + " or " + operand(1) + ")";
    case Kind::kNot:
      return "(not " + operand(0) + ")";
    case Kind::kCompare: {
      std::string result = "(" + operand(0);
      for (size_t i = 0; i < node.names.size(); ++i) result += node.names[i] + operand(i + 1);
      return result + ")";
    }
    case Kind::kConditional:
      return "(" + operand(1) + " if " + operand(0) + ")";
    case Kind::kFilter:
      return "(" + operand(0) + "|" + node.name + ")";
    case Kind::kTest:
      return "(" + operand(0) + " is " + node.name + ")";
    case Kind::kAttribute:
      return operand(0) + "." + node.name;
    case Kind::kCall:
      return operand(0) + "()";
    default:
      return "?";
  }
}

std::string expression(const std::string& source) {
  const Template tree = parse("{{ " + source + " }}");
  return bracketed(*tree.body.at(0)->value);
}

// The grammar of jinja2/parser.py.
TEST(JinjaParser, BindsOperatorsInJinjasOrder) {
  EXPECT_EQ(expression("a + b * c"), "(a+(b*c))");
  EXPECT_EQ(expression("a - b - c"), "((a-b)-c)");
  EXPECT_EQ(expression("a + b ~ c * d"), "(a+(b~(c*d)))");
  EXPECT_EQ(expression("a ** b ** c"), "((a**b)**c)");
  EXPECT_EQ(expression("-a ** b"), "((-a)**b)");
  EXPECT_EQ(expression("a or b and not c == d"), "(a or (b and (not (c==d))))");
  EXPECT_EQ(expression("a < b <= c"), "(a<b<=c)");
  EXPECT_EQ(expression("a not in b"), "(anot inb)");
  EXPECT_EQ(expression("not a in b"), "(not (ainb))");
  EXPECT_EQ(expression("a if b or c"), "(a if (b or c))");
}

TEST(JinjaParser, FiltersBindTighterThanOperatorsAndLooserThanAttributes) {
  EXPECT_EQ(expression("a + b.c|upper"), "(a+(b.c|upper))");
  EXPECT_EQ(expression("-a|abs"), "((-a)|abs)");
  EXPECT_EQ(expression("a is defined and b"), "((a is defined) and b)");
  EXPECT_EQ(expression("a is not odd"), "(not (a is odd))");
  EXPECT_EQ(expression("a|upper|lower is string"), "(((a|upper)|lower) is string)");
  EXPECT_EQ(expression("a.b().c"), "a.b().c");
}

TEST(JinjaParser, NamesOfOneScopeShareASlotAndLoopsHaveTheirOwn) {
  const Template tree = parse("{{ x }}{% set x = 1 %}{% for i in x %}{% set x = i %}{% endfor %}");
  EXPECT_EQ(tree.body[0]->value->place.slot, tree.body[1]->target->place.slot);
  EXPECT_NE(tree.body[2]->body[0]->target->place.slot, tree.body[1]->target->place.slot);
  EXPECT_EQ(tree.function.num_slots, 3);
  EXPECT_FALSE(tree.function.captured);
}

TEST(JinjaParser, MacrosReachOutwardByHops) {
  const Template tree = parse("{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}");
  EXPECT_TRUE(tree.function.captured);
  EXPECT_EQ(tree.body[1]->body[0]->value->place.hops, 1);
  EXPECT_EQ(tree.body[1]->body[0]->value->place.slot, tree.body[0]->target->place.slot);
}

}  // namespace
}  // namespace trtmc::jinja
