#include "engine/draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TokenId> proposed(PromptLookup& lookup, const std::vector<TokenId>& tokens) {
  const auto draft = lookup.propose(tokens);
  return {draft.begin(), draft.end()};
}

TEST(PromptLookup, GuessesWhatFollowedTheSameTokens) {
  PromptLookup lookup;
  EXPECT_THAT(proposed(lookup, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3}), ElementsAre(4, 5, 6, 7));
}

TEST(PromptLookup, TheLastTimeCounts) {
  PromptLookup lookup;
  EXPECT_THAT(proposed(lookup, {1, 2, 3, 4, 9, 1, 2, 3, 5, 6, 7, 8, 9, 1, 2, 3}),
              ElementsAre(5, 6, 7, 8));
}

TEST(PromptLookup, GuessesNothingAfterWhatIsNew) {
  PromptLookup lookup;
  EXPECT_THAT(proposed(lookup, {1}), IsEmpty());
  EXPECT_THAT(proposed(lookup, {1, 2, 3}), IsEmpty());
  EXPECT_THAT(proposed(lookup, {1, 2, 3, 4, 5, 2, 3}), IsEmpty());  // 5 2 3 has not been there.
}

TEST(PromptLookup, WhatRepeatsWithAShortPeriodGoesOn) {
  PromptLookup sevens, turns;
  EXPECT_THAT(proposed(sevens, {7, 7, 7, 7}), ElementsAre(7, 7, 7, 7));
  EXPECT_THAT(proposed(turns, {1, 2, 1, 2, 1}), ElementsAre(2, 1, 2, 1));
}

TEST(PromptLookup, RightGuessesMakeForMore) {
  PromptLookup lookup;
  const std::vector<TokenId> tokens(20, 7);
  EXPECT_EQ(proposed(lookup, tokens).size(), 4u);
  lookup.record(4, 4);  // 4 + 3 * 4 - 4 = 12.
  EXPECT_EQ(proposed(lookup, tokens).size(), 8u);
  lookup.record(8, 0);  // 4.
  EXPECT_EQ(proposed(lookup, tokens).size(), 4u);
}

TEST(PromptLookup, PausesWhenItDoesNotPayLongerEachTime) {
  PromptLookup lookup;
  const std::vector<TokenId> tokens(20, 7);
  const auto pause = [&] {
    int calls = 0;
    while (proposed(lookup, tokens).empty()) ++calls;
    return calls;
  };
  EXPECT_EQ(pause(), 0);
  lookup.record(4, 0);
  EXPECT_EQ(pause(), 16);
  lookup.record(1, 0);
  EXPECT_EQ(pause(), 32);
  for (int i = 0; i < 10; ++i) {
    lookup.record(1, 0);
    pause();
  }
  lookup.record(1, 0);
  EXPECT_EQ(pause(), 512);
  lookup.record(1, 1);  // Right after all.
  EXPECT_EQ(proposed(lookup, tokens).size(), 3u);
  lookup.record(3, 0);
  EXPECT_EQ(pause(), 16);
}

// One of three right costs as much as it brings.
TEST(PromptLookup, OneRightOfThreeKeepsTheBalance) {
  PromptLookup lookup;
  const std::vector<TokenId> tokens(20, 7);
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(proposed(lookup, tokens).empty());
    lookup.record(3, 1);
  }
}

TEST(PromptLookup, SeesTokensAsTheyCome) {
  PromptLookup lookup;
  std::vector<TokenId> tokens;
  for (TokenId i = 0; i < 1000; ++i) {
    tokens.push_back(i);
    ASSERT_THAT(proposed(lookup, tokens), IsEmpty());
  }
  // Places are forgotten where a later one has the same hash: at most a quarter of them.
  int found = 0;
  for (TokenId start = 0; start < 900; start += 9) {
    std::vector<TokenId> again = tokens;
    for (TokenId i = start; i < start + 3; ++i) again.push_back(i);
    PromptLookup copy = lookup;
    const auto draft = proposed(copy, again);
    if (draft.empty()) continue;
    ++found;
    EXPECT_THAT(draft, ElementsAre(start + 3, start + 4, start + 5, start + 6));
  }
  EXPECT_GE(found, 75);
}

}  // namespace
}  // namespace trtmc
