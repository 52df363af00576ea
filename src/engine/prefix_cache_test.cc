#include "engine/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc {
namespace {

using testing::ElementsAre;

constexpr BlockId kNone = PrefixCache::kNone;
using Tokens = std::vector<TokenId>;

class PrefixCacheTest : public testing::Test {
 protected:
  // A block of its own with these tokens.
  BlockId add(BlockId parent, const Tokens& tokens) {
    return cache_.add(parent, tokens, *blocks_.try_allocate());
  }

  KvBlocks blocks_{200};
  PrefixCache cache_{blocks_, 2};
};

TEST_F(PrefixCacheTest, FindsABlockByItsTokensAndThoseBefore) {
  const BlockId first = add(kNone, {1, 2}), second = add(first, {3, 4});
  EXPECT_EQ(cache_.take(kNone, Tokens{1, 2}), first);
  EXPECT_EQ(cache_.take(first, Tokens{3, 4}), second);
  EXPECT_EQ(cache_.take(kNone, Tokens{3, 4}), kNone);
  EXPECT_EQ(cache_.take(second, Tokens{3, 4}), kNone);
  EXPECT_EQ(cache_.take(first, Tokens{3, 5}), kNone);
  EXPECT_EQ(blocks_.references(first), 3);  // Who added it, who took it, and the cache.
}

TEST_F(PrefixCacheTest, KeepsOneBlockOfEqualTokens) {
  const BlockId first = add(kNone, {1, 2});
  EXPECT_EQ(add(kNone, {1, 2}), first);
  EXPECT_EQ(blocks_.references(first), 3);
  EXPECT_EQ(blocks_.num_free(), 199);
}

TEST_F(PrefixCacheTest, EvictsWhatHasBeenIdleLongestLastBlockFirst) {
  const BlockId a1 = add(kNone, {1, 1}), a2 = add(a1, {2, 2});
  const BlockId b1 = add(kNone, {3, 3});
  EXPECT_FALSE(cache_.evict_one());
  for (const BlockId block : {a2, a1, b1}) cache_.release(block);
  EXPECT_THAT(cache_.idle_blocks(), ElementsAre(a2, a1, b1));
  EXPECT_EQ(cache_.take(kNone, Tokens{1, 1}), a1);  // In use again.
  EXPECT_THAT(cache_.idle_blocks(), ElementsAre(a2, b1));
  EXPECT_TRUE(cache_.evict_one());
  EXPECT_EQ(cache_.take(a1, Tokens{2, 2}), kNone);
  cache_.release(a1);
  EXPECT_THAT(cache_.idle_blocks(), ElementsAre(b1, a1));
  EXPECT_TRUE(cache_.evict_one());
  EXPECT_TRUE(cache_.evict_one());
  EXPECT_FALSE(cache_.evict_one());
  EXPECT_EQ(blocks_.num_free(), blocks_.num_blocks());
}

TEST_F(PrefixCacheTest, FindsEachOfManyChains) {
  std::vector<BlockId> last;
  for (TokenId chain = 0; chain < 40; ++chain) {
    BlockId parent = kNone;
    for (TokenId depth = 0; depth < 5; ++depth) parent = add(parent, {chain, depth});
    last.push_back(parent);
  }
  EXPECT_EQ(blocks_.num_free(), 0);
  for (TokenId chain = 0; chain < 40; ++chain) {
    BlockId parent = kNone;
    for (TokenId depth = 0; depth < 5; ++depth) parent = cache_.take(parent, Tokens{chain, depth});
    EXPECT_EQ(parent, last[static_cast<size_t>(chain)]);
  }
}

// A block that is evicted and used again for other tokens is not what followed it before.
TEST_F(PrefixCacheTest, AReusedBlockIsNoLongerFoundForItsOldTokens) {
  const BlockId block = add(kNone, {1, 2});
  cache_.release(block);
  cache_.evict_one();
  ASSERT_EQ(add(kNone, {5, 6}), block);
  EXPECT_EQ(cache_.take(kNone, Tokens{1, 2}), kNone);
  EXPECT_EQ(cache_.take(kNone, Tokens{5, 6}), block);
}

using PrefixCacheDeathTest = PrefixCacheTest;
TEST_F(PrefixCacheDeathTest, RefusesWhatIsNotFullOrShared) {
  const BlockId block = *blocks_.try_allocate();
  EXPECT_DEATH(cache_.take(kNone, Tokens{1}), "not full");
  EXPECT_DEATH(cache_.add(block, Tokens{1, 2}, *blocks_.try_allocate()), "the one before");
  blocks_.retain(block);
  EXPECT_DEATH(cache_.add(kNone, Tokens{1, 2}, block), "shared");
}

TEST_F(PrefixCacheTest, ForgetsADroppedBlockAtOnce) {
  const BlockId first = add(kNone, {1, 2}), second = add(first, {3, 4});
  cache_.drop(second);
  cache_.drop(first);
  EXPECT_EQ(blocks_.num_free(), 200);
  EXPECT_EQ(cache_.take(kNone, Tokens{1, 2}), kNone);
}

TEST_F(PrefixCacheTest, KeepsADroppedBlockThatOthersNeed) {
  const BlockId first = add(kNone, {1, 2});
  const BlockId kept = add(first, {3, 4}), dropped = add(first, {5, 6});
  cache_.release(kept);
  cache_.drop(dropped);
  cache_.drop(first);  // `kept` follows it.
  EXPECT_EQ(blocks_.num_free(), 198);
  EXPECT_EQ(cache_.take(kNone, Tokens{1, 2}), first);
  EXPECT_EQ(cache_.take(first, Tokens{3, 4}), kept);
  cache_.take(first, Tokens{3, 4});
  cache_.drop(kept);  // Is held still.
  EXPECT_EQ(blocks_.num_free(), 198);
  cache_.drop(kept);
  EXPECT_EQ(blocks_.num_free(), 199);
}

}  // namespace
}  // namespace trtmc
