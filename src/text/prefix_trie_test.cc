#include "text/prefix_trie.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// (size, id) of the tokens that `text` begins with.
std::vector<std::pair<size_t, uint32_t>> tokens_of(const std::vector<PrefixNode>& nodes,
                                                   std::string_view text) {
  std::vector<std::pair<size_t, uint32_t>> found;
  PrefixTrie(nodes).walk(text, [&](const PrefixNode& node, size_t size) {
    if ((node.flags() & kPrefixToken) != 0) found.emplace_back(size, node.id());
  });
  return found;
}

TEST(PrefixTrie, AWalkMeetsEveryTokenThatTheTextBeginsWith) {
  const auto nodes = make_prefix_trie({{"ab", 1, kPrefixToken},
                                       {"a", 0, kPrefixToken},
                                       {"abcd", 2, kPrefixToken},
                                       {"\xE4\xB8\xAD", 3, kPrefixToken},
                                       {"b", 0xFFFFFF, kPrefixToken}});
  using Found = std::pair<size_t, uint32_t>;
  EXPECT_THAT(tokens_of(nodes, "abcde"), ElementsAre(Found(1, 0), Found(2, 1), Found(4, 2)));
  EXPECT_THAT(tokens_of(nodes, "abx"), ElementsAre(Found(1, 0), Found(2, 1)));
  EXPECT_THAT(tokens_of(nodes, "\xE4\xB8\xAD\xE4"), ElementsAre(Found(3, 3)));
  EXPECT_THAT(tokens_of(nodes, "b"), ElementsAre(Found(1, 0xFFFFFF)));
  EXPECT_THAT(tokens_of(nodes, "c"), IsEmpty());
  EXPECT_THAT(tokens_of(nodes, std::string_view("\0a", 2)), IsEmpty());
  EXPECT_THAT(tokens_of(nodes, ""), IsEmpty());
}

// Two bytes each, all of them: many nodes with many children, which must not take each other's.
TEST(PrefixTrie, EveryPairOfBytesIsFoundAndNothingElse) {
  std::vector<std::string> texts;
  for (int first = 0; first < 256; ++first) {
    for (int second = first % 3; second < 256; second += 3) {
      texts.push_back({static_cast<char>(first), static_cast<char>(second)});
    }
  }
  std::vector<PrefixEntry> entries;
  for (uint32_t id = 0; id < texts.size(); ++id) entries.push_back({texts[id], id, kPrefixToken});
  const auto nodes = make_prefix_trie(entries);
  EXPECT_EQ(nodes.size() % 256, 0u);
  EXPECT_LE(nodes.size(), 258u * 256u);  // A block for the root, at most one for each node.
  size_t wrong = 0;
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      const auto found = tokens_of(nodes, text);
      const bool there = second % 3 == first % 3;
      wrong += found.size() != (there ? 1 : 0) || (there && texts[found[0].second] != text);
    }
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(PrefixTrie, WithoutTokensThereIsARoot) {
  EXPECT_THAT(tokens_of(make_prefix_trie({}), "a"), IsEmpty());
}

}  // namespace
}  // namespace trtmc
