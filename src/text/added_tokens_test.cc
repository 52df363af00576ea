// Added tokens through the whole tokenizer. Every expected list was made by tokenizers 0.23.3; the
// live comparison covers far more (tests/differential).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/small_tokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace trtmc {
namespace {

using testing::ElementsAre;

struct Flags {
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

// Ids of `text` where the added tokens have the ids 256, 257, …
std::vector<TokenId> encode(const std::vector<std::pair<std::string, Flags>>& added,
                            std::string_view text) {
  Json::Array tokens;
  for (const auto& [content, flags] : added) {
    Json token(Json::Object{});
    token.set("id", 256 + static_cast<int>(tokens.size()));
    token.set("content", content);
    token.set("single_word", flags.single_word);
    token.set("lstrip", flags.lstrip);
    token.set("rstrip", flags.rstrip);
    token.set("normalized", flags.normalized);
    token.set("special", flags.special);
    tokens.push_back(std::move(token));
  }
  Json root = small_tokenizer();
  root.set("added_tokens", std::move(tokens));
  const auto tables = compile_tokenizer(root.dump());
  return Tokenizer(tables).encode(text);
}

TEST(AddedTokens, AreMatchedLeftmostThenLongest) {
  EXPECT_THAT(encode({{"ab", {}}, {"abcd", {}}, {"bc", {}}}, "abcdabc"),
              ElementsAre(257, 256, 'c'));
}

TEST(AddedTokens, ThatAreNotNormalizedComeFirst) {
  EXPECT_THAT(encode({{"ab", {.normalized = true}}, {"bc", {}}}, "abc"), ElementsAre('a', 257));
}

TEST(AddedTokens, OfASingleWordMatchNotWithinAWord) {
  EXPECT_THAT(encode({{"ab", {.single_word = true}}}, "ab xab ab_ ab."),
              ElementsAre(256, ' ', 'x', 'a', 'b', ' ', 'a', 'b', '_', ' ', 256, '.'));
}

TEST(AddedTokens, TakeTheWhiteSpaceBesideThem) {
  EXPECT_THAT(encode({{"<a>", {.lstrip = true}}}, "x \n<a> y"), ElementsAre('x', 256, ' ', 'y'));
  EXPECT_THAT(encode({{"<a>", {.rstrip = true}}}, "x <a>\t y"), ElementsAre('x', ' ', 256, 'y'));
}

TEST(AddedTokens, AreFoundInTextThatTheOneBeforeHasTaken) {
  EXPECT_THAT(encode({{"<a>", {.rstrip = true}}, {" ", {}}}, "<a> x"), ElementsAre(256, 257, 'x'));
}

}  // namespace
}  // namespace trtmc
