#include "text/jinja_folding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/jinja_parser.h"

namespace trtmc::jinja {
namespace {

using testing::HasSubstr;

Template folded(const std::string& source) {
  Template tree = parse(source);
  fold_constants(tree);
  return tree;
}

// What jinja2 renders is in tests/golden/jinja_goldens.json.xz, group "folding".

TEST(JinjaFolding, ConstantsBecomeOneAndVariablesStay) {
  const Template tree = folded("{% set x = 2 * 3 + 1 %}{% set y = 2 * 3 + x %}");
  EXPECT_EQ(tree.body[0]->value->kind, ExpressionKind::kConstant);
  EXPECT_EQ(*tree.body[0]->value->value.integer(), 7);
  const Expression& sum = *tree.body[1]->value;
  ASSERT_EQ(sum.kind, ExpressionKind::kBinary);
  EXPECT_EQ(*sum.operands[0]->value.integer(), 6);
  EXPECT_EQ(sum.operands[1]->kind, ExpressionKind::kName);
}

TEST(JinjaFolding, WhatIsPrintedBecomesText) {
  const Template tree = folded("{{ 'a' ~ 1 }}{{ x }}");
  ASSERT_EQ(tree.body[0]->kind, StatementKind::kText);
  EXPECT_EQ(tree.body[0]->text, "a1");
  EXPECT_EQ(tree.body[1]->kind, StatementKind::kPrint);
}

TEST(JinjaFolding, AConstantThatFailsIsLeftToFailWhenItRuns) {
  EXPECT_EQ(folded("{{ 1 / 0 }}").body[0]->value->kind, ExpressionKind::kBinary);
}

// To Python it is -(9223372036854775808 ** n).
TEST(JinjaFolding, ThePowerOfTheSmallestIntegerIsBeyond64Bits) {
  const ChatTemplate chat("{{ (-9223372036854775807 - 1) ** n }}");
  ChatInput input;
  input.messages = Json::Array();
  input.template_kwargs = {{"n", Json(1)}};
  try {
    chat.render(input);
    FAIL() << "rendered";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  }
}

TEST(JinjaFolding, CostlyConstantsAreLeftToTheRendersLimits) {
  const std::clock_t start = std::clock();
  const ChatTemplate chat(
      "{% set a = (([[0] * 1000] * 1000) * 1000) * 1000 %}{{ a }}{{ 'a' * 60000000 }}");
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 5);
  ChatInput input;
  input.messages = Json::Array();
  try {
    chat.render(input);
    FAIL() << "rendered";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("too "));
  }
}

}  // namespace
}  // namespace trtmc::jinja
