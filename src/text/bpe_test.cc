// Merging through the whole tokenizer, worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/small_tokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace trtmc {
namespace {

using testing::ElementsAre;

std::vector<TokenId> encode(const Json& root, std::string_view text) {
  const auto tables = compile_tokenizer(root.dump());
  return Tokenizer(tables).encode(text);
}

TEST(Bpe, LowerRanksMergeFirst) {
  // "bc" before "ab": a+bc, which has no merge of its own.
  EXPECT_THAT(encode(small_tokenizer({{"b", "c"}, {"a", "b"}}), "abc"), ElementsAre('a', 256));
  EXPECT_THAT(encode(small_tokenizer({{"a", "b"}, {"b", "c"}}), "abc"), ElementsAre(256, 'c'));
}

TEST(Bpe, EqualRanksMergeFromTheLeft) {
  EXPECT_THAT(encode(small_tokenizer({{"a", "a"}}), "aaa"), ElementsAre(256, 'a'));
}

TEST(Bpe, OfEqualPairsTheLastOneCounts) {
  Json root = small_tokenizer({{"a", "b"}, {"b", "c"}});
  Json model = *root.find("model");
  model.set("merges", Json::Array{"a b", "b c", "a b"});  // a+b now comes after b+c.
  root.set("model", model);
  EXPECT_THAT(encode(root, "abc"), ElementsAre('a', 257));
}

// Words of 48 bytes and less go another way than longer ones.
TEST(Bpe, ShortAndLongWordsMergeAlike) {
  const Json root = small_tokenizer({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
  for (const size_t eights : {5u, 6u, 7u, 1000u}) {
    std::vector<TokenId> expected(eights, 258);
    expected.insert(expected.end(), {257, 256, 'a'});
    EXPECT_EQ(encode(root, std::string(8 * eights + 7, 'a')), expected);
  }
}

TEST(Bpe, IgnoringMergesAWordOfTheVocabularyIsOneToken) {
  Json root = small_tokenizer({{"a", "b"}, {"b", "c"}});
  Json model = *root.find("model");
  Json vocab = *model.find("vocab");
  vocab.set("abc", 258);
  model.set("vocab", vocab);
  root.set("model", model);
  EXPECT_THAT(encode(root, "abc"), ElementsAre(256, 'c'));
  model.set("ignore_merges", true);
  root.set("model", model);
  EXPECT_THAT(encode(root, "abc"), ElementsAre(258));
}

}  // namespace
}  // namespace trtmc
