#include "text/oniguruma_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/split_regex.h"

namespace trtmc {
namespace {

using testing::ElementsAre;

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  std::vector<std::string> result;
  SplitRegex(pattern).for_each_match(text, [&](size_t begin, size_t end) {
    result.emplace_back(text.substr(begin, end - begin));
  });
  return result;
}

TEST(OnigurumaPattern, ClassesAreThoseOfUnicode16) {
  EXPECT_THAT(matches(R"(\s)", "\u180E\u2003"), ElementsAre("\u2003"));
  EXPECT_THAT(matches(R"(\p{N})", "\U00010D40"), ElementsAre("\U00010D40"));  // New in 16.0.
  EXPECT_THAT(matches(R"([^\p{L}\s]+)", "ab\u00E91-2 "), ElementsAre("1-2"));
  EXPECT_THAT(matches(R"(\w+)", "a\u00B2\u200Db"), ElementsAre("a\u00B2", "b"));
}

TEST(OnigurumaPattern, FoldsCaseAsOnigurumaDoes) {
  EXPECT_THAT(matches("(?i:'s|k)", "'S'\u017F\u212AK"),
              ElementsAre("'S", "'\u017F", "\u212A", "K"));
}

// Ruby: a repetition in braces is repeated by a +, it does not become possessive.
TEST(OnigurumaPattern, PlusAfterBracesRepeats) {
  EXPECT_THAT(matches("a{1,2}+b", "aaaab"), ElementsAre("aaaab"));
  EXPECT_THAT(matches("a++a", "aaa"), ElementsAre());
}

TEST(OnigurumaPattern, LineEndsAreThoseOfRuby) {
  EXPECT_THAT(matches("^.", "ab\ncd\n"), ElementsAre("a", "c"));
  EXPECT_THAT(matches(".$", "ab\ncd"), ElementsAre("b", "d"));
}

TEST(OnigurumaPattern, EmptyMatchesComeOncePerPlace) {
  EXPECT_THAT(matches("x*", "axxb"), ElementsAre("", "xx", ""));
}

TEST(OnigurumaPattern, RefusesWhatHasNoSureCounterpart) {
  for (const char* pattern :
       {R"(\p{Han})",    R"(\h)",      R"(\b)",    R"((a)\1)",       R"((?<n>a))",
        R"((?m:.))",     R"([a&&b])",  R"([[a]])", R"([[:alpha:]])", R"((?i:ss))",
        R"((?i:\p{L}))", R"((?i:é))",  R"(a{2}?)", R"(a**)",         R"(\R)",
        R"(\X)",         R"(a{2000})", R"((?#x))", R"({)",           R"(\xE9)"}) {
    try {
      pcre2_of_oniguruma(pattern);
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << pattern;
    }
  }
}

TEST(OnigurumaPattern, RefusesBadSyntax) {
  for (const char* pattern : {"(a", "a)", "[a", "*a", "\\", "a{3,2}", "[z-a]", "\\x{110000}"}) {
    try {
      SplitRegex regex(pattern);
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << pattern;
    }
  }
}

TEST(OnigurumaPattern, DeepNestingIsRefusedInTime) {
  EXPECT_THROW(SplitRegex(std::string(10000, '(')), Error);
}

// Catastrophic backtracking ends in a sentence.
TEST(SplitRegex, GivesUpWithinItsLimit) {
  EXPECT_THROW(matches("(?:a|a)+b|(?:(?:a+)+)+c", std::string(60, 'a')), Error);
}

// Each place of the text takes some 2^20 steps, which is below the limit for one place.
TEST(SplitRegex, GivesUpOnATextWhereEveryPlaceTakesLong) {
  const std::string text(5000, 'a');
  EXPECT_THROW(matches("(?:a?){20}b|.", text), Error);
  EXPECT_THROW(matches("(?:a?){20}[bc]", text), Error);
}

TEST(SplitRegex, FindsMatchesThatAreFarApartOrHardToFind) {
  std::string text = std::string(9000, 'x') + "ab";
  for (int i = 0; i < 5000; ++i) text += "\u00E9";
  text += "ab";
  EXPECT_EQ(matches("ab", text), (std::vector<std::string>{"ab", "ab"}));
  EXPECT_EQ(matches("(?:a?){14}b|a", std::string(30, 'a')), std::vector<std::string>(30, "a"));
}

}  // namespace
}  // namespace trtmc
