// Matching against merging, which the differential tests hold against `tokenizers`.
#include "text/word_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/small_tokenizer.h"
#include "text/bpe.h"
#include "text/tokenizer_json.h"

namespace trtmc {
namespace {

using testing::ElementsAre;
using Merges = std::vector<std::pair<std::string, std::string>>;

std::vector<TokenId> word_ids(const Merges& merges, std::string_view word) {
  const auto bytes = compile_tokenizer(small_tokenizer(merges).dump());
  std::vector<TokenId> ids;
  append_word(TokenizerTables(bytes), word, ids);
  return ids;
}

TEST(WordEncoder, TheLongestTokenGivesWayToAMergeAcrossItsEnd) {
  // b+c comes before ab.
  EXPECT_THAT(word_ids({{"b", "c"}, {"a", "b"}, {"bc", "d"}}, "abcd"), ElementsAre('a', 258));
}

TEST(WordEncoder, OfEqualMergesTheLeftmostComesFirst) {
  EXPECT_THAT(word_ids({{"a", "a"}, {"aa", "a"}}, "aaaaa"), ElementsAre(256, 257));
}

TEST(WordEncoder, AMergeWhoseRankHadItsTurnComesAtOnce) {
  // a+bc has the lowest rank, but there is no bc before b+c; then it comes before bc+d.
  const Merges merges{{"a", "bc"}, {"b", "c"}, {"bc", "d"}};
  EXPECT_THAT(word_ids(merges, "abcd"), ElementsAre(256, 'd'));
  EXPECT_THAT(word_ids(merges, "xbcd"), ElementsAre('x', 258));
}

TEST(WordEncoder, BackWhereNothingGoesOn) {
  // Longest first finds "abcd", behind which "e" does not stand: d+e came before.
  const Merges merges{{"d", "e"}, {"a", "b"}, {"ab", "c"}, {"abc", "d"}};
  EXPECT_THAT(word_ids(merges, "abcde"), ElementsAre(258, 256));
}

// Tokenizers whose merges are made up at random, in the order that they were found in or in none.
TEST(WordEncoder, MatchingGivesWhatMergingGives) {
  std::mt19937 random(1);
  const auto below = [&](size_t count) { return static_cast<size_t>(random() % count); };
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> texts{"a", "b", "c"};
    Merges merges;
    const size_t count = 4 + below(40);
    while (merges.size() < count) {
      const auto pair = std::pair(texts[below(texts.size())], texts[below(texts.size())]);
      const std::string text = pair.first + pair.second;
      if (text.size() > 9 || std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
      texts.push_back(text);
      merges.push_back(pair);
    }
    if (round % 2 == 1) std::shuffle(merges.begin(), merges.end(), random);
    const auto bytes = compile_tokenizer(small_tokenizer(merges).dump());
    const TokenizerTables tables(bytes);
    ASSERT_GT(tables.longest_match(), 0u);
    for (int i = 0; i < 200; ++i) {
      std::string word(1 + below(i % 20 == 0 ? 100 : 24), 'a');
      for (char& c : word) c = static_cast<char>('a' + below(3));
      std::vector<TokenId> matched, merged;
      append_word(tables, word, matched);
      append_bpe(tables.merges(), word, merged);
      ASSERT_EQ(matched, merged) << "round " << round << ", " << word;
    }
  }
}

}  // namespace
}  // namespace trtmc
