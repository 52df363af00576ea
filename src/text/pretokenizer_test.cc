#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc {
namespace {

using testing::ElementsAre;
using Behavior = PretokenizerStep::Behavior;
using Kind = PretokenizerStep::Kind;

std::vector<std::string> words(std::vector<PretokenizerStep> steps, std::string_view text,
                               PretokenizerStep last = {.kind = Kind::kByteLevel}) {
  steps.push_back(last);
  std::vector<std::string> result;
  Pretokenizer(steps).split(text, [&](std::string_view word) { result.emplace_back(word); });
  return result;
}

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string> llama3(std::string_view text) {
  return words({{.kind = Kind::kRegex, .pattern = std::string(kLlama3)}}, text);
}

// What the pattern's alternatives say, read by hand.
TEST(Pretokenizer, SplitsAsTheLlama3PatternSays) {
  EXPECT_THAT(llama3("don'T stop"), ElementsAre("don", "'T", " stop"));
  EXPECT_THAT(llama3("'\u017Fx"), ElementsAre("'\u017F", "x"));
  EXPECT_THAT(llama3("'k"), ElementsAre("'k"));
  EXPECT_THAT(llama3("12345"), ElementsAre("123", "45"));
  EXPECT_THAT(llama3("a  b"), ElementsAre("a", " ", " b"));
  EXPECT_THAT(llama3("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(llama3(" \n \n x"), ElementsAre(" \n \n", " x"));
  EXPECT_THAT(llama3("?!\r\n\r\nx"), ElementsAre("?!\r\n\r\n", "x"));
  EXPECT_THAT(llama3("\tx\t1"), ElementsAre("\tx", "\t", "1"));
  EXPECT_THAT(llama3(""), ElementsAre());
}

TEST(Pretokenizer, ByteLevelSplitsAsGpt2) {
  const PretokenizerStep last{
      .kind = Kind::kByteLevel, .add_prefix_space = true, .use_regex = true};
  EXPECT_THAT(words({}, "I'm I'M  12345!", last),
              ElementsAre(" I", "'m", " I", "'", "M", " ", " 12345", "!"));
  EXPECT_THAT(words({}, " x", last), ElementsAre(" x"));
}

// The table of normalizer.rs: "The-final--countdown" by "-".
TEST(Pretokenizer, BehavioursAreThoseOfTokenizers) {
  const auto split = [](Behavior behavior) {
    return words({{.kind = Kind::kLiteral, .behavior = behavior, .pattern = "-"}},
                 "The-final--countdown");
  };
  EXPECT_THAT(split(Behavior::kRemoved), ElementsAre("The", "final", "countdown"));
  EXPECT_THAT(split(Behavior::kIsolated), ElementsAre("The", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(split(Behavior::kMergedWithPrevious),
              ElementsAre("The-", "final-", "-", "countdown"));
  EXPECT_THAT(split(Behavior::kMergedWithNext), ElementsAre("The", "-final", "-", "-countdown"));
  EXPECT_THAT(split(Behavior::kContiguous), ElementsAre("The", "-", "final", "--", "countdown"));
}

TEST(Pretokenizer, InvertedSplitRemovesWhatIsBetween) {
  EXPECT_THAT(words({{.kind = Kind::kRegex,
                      .behavior = Behavior::kRemoved,
                      .invert = true,
                      .pattern = R"([a-z]+)"}},
                    "one, two"),
              ElementsAre("one", "two"));
}

TEST(Pretokenizer, DigitsKnowTheNumbersOfUnicode17) {
  EXPECT_THAT(words({{.kind = Kind::kNumbers}}, "a12\U00011DE1"),
              ElementsAre("a", "1", "2", "\U00011DE1"));
}

// PCRE2 runs what no scanner knows; both must agree where one is written as the other.
TEST(Pretokenizer, ScannersAgreeWithTheRegularExpression) {
  const std::string same = "(?:" + std::string(kLlama3) + ")";
  for (const std::string text : {"I'LL pay \u00BD of 1234\u0663\u0664 \u4F60\u597D!!\r\n\n  \t "
                                 "x\u00A0\u00A0y \u180E\u180Ez'\u017F",
                                 "  \n\r ", "\u2167\u2460x", "a\u0301b", "'' 's'S"}) {
    EXPECT_EQ(llama3(text), words({{.kind = Kind::kRegex, .pattern = same}}, text)) << text;
  }
}

}  // namespace
}  // namespace trtmc
