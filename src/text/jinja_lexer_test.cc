#include "text/jinja_lexer.h"

#include <gtest/gtest.h>

namespace trtmc::jinja {
namespace {

using Kind = Token::Kind;

// The tokens in short: data in quotes, tags by their brackets, the rest by its text.
std::string in_short(std::string_view source) {
  std::string result;
  for (const Token& token : tokenize(source)) {
    switch (token.kind) {
      case Kind::kData:
        result += "'" + token.text + "' ";
        break;
      case Kind::kVariableBegin:
        result += "{{ ";
        break;
      case Kind::kVariableEnd:
        result += "}} ";
        break;
      case Kind::kBlockBegin:
        result += "{% ";
        break;
      case Kind::kBlockEnd:
        result += "%} ";
        break;
      case Kind::kEnd:
        break;
      default:
        result += token.text + " ";
    }
  }
  return result;
}

TEST(JinjaLexer, TakesTheLongestOperator) {
  EXPECT_EQ(in_short("{{ a**b//c<=d!=e }}"), "{{ a ** b // c <= d != e }} ");
}

TEST(JinjaLexer, EndsATagOnlyOutsideBrackets) {
  EXPECT_EQ(in_short("{{ {'a': {}} }}"), "{{ { a : { } } }} ");
}

TEST(JinjaLexer, DropsOneNewlineAtTheEndAndNormalisesTheOthers) {
  EXPECT_EQ(in_short("a\r\nb\rc\r\n"), "'a\nb\nc' ");
  EXPECT_EQ(in_short("a\n\n"), "'a\n' ");
}

TEST(JinjaLexer, ABlockTakesTheNewlineBehindItAndTheBlanksBeforeIt) {
  EXPECT_EQ(in_short("x\n  {% a %}\n  y"), "'x\n' {% a %} '  y' ");
  EXPECT_EQ(in_short("x  {% a %} y"), "'x  ' {% a %} ' y' ");
}

TEST(JinjaLexer, AnExpressionTakesNothing) {
  EXPECT_EQ(in_short("  {{ a }}\n x"), "'  ' {{ a }} '\n x' ");
}

TEST(JinjaLexer, DashesTakeAllWhiteSpaceAndPlusesKeepIt) {
  EXPECT_EQ(in_short("x \n {{- a -}} \n y"), "'x' {{ a }} 'y' ");
  EXPECT_EQ(in_short("x\n  {%+ a +%}\ny"), "'x\n  ' {% a %} '\ny' ");
}

TEST(JinjaLexer, ADotMakesTheNextNumberAnInteger) {
  EXPECT_EQ(in_short("{{ a.1.5 }}{{ 1.5 }}"), "{{ a . 1 . 5 }} {{ 1.5 }} ");
}

TEST(JinjaLexer, KnowsWhereATokenStands) {
  const auto tokens = tokenize("ab\n{{ x }}");
  ASSERT_EQ(tokens.size(), 5u);
  EXPECT_EQ(tokens[2].text, "x");
  EXPECT_EQ(tokens[2].position.line, 2);
  EXPECT_EQ(tokens[2].position.column, 4);
}

}  // namespace
}  // namespace trtmc::jinja
