#include "engine/kv_blocks.h"

#include <gtest/gtest.h>

#include <set>

namespace trtmc {
namespace {

TEST(KvBlocks, HandsOutEachBlockOnceThenNothing) {
  KvBlocks blocks(3);
  std::set<BlockId> taken;
  for (int i = 0; i < 3; ++i) taken.insert(*blocks.try_allocate());
  EXPECT_EQ(taken, (std::set<BlockId>{0, 1, 2}));
  EXPECT_EQ(blocks.try_allocate(), std::nullopt);
  EXPECT_EQ(blocks.num_free(), 0);
}

TEST(KvBlocks, TheLastReleaseFrees) {
  KvBlocks blocks(1);
  const BlockId block = *blocks.try_allocate();
  blocks.retain(block);
  EXPECT_EQ(blocks.references(block), 2);
  blocks.release(block);
  EXPECT_EQ(blocks.num_free(), 0);
  blocks.release(block);
  EXPECT_EQ(blocks.num_free(), 1);
}

TEST(KvBlocks, TheWarmestBlockGoesOutFirst) {
  KvBlocks blocks(4);
  blocks.try_allocate();
  const BlockId warm = *blocks.try_allocate();
  blocks.release(warm);
  EXPECT_EQ(blocks.try_allocate(), warm);
}

TEST(KvBlocksDeathTest, FreeingTwiceIsOurBug) {
  KvBlocks blocks(1);
  const BlockId block = *blocks.try_allocate();
  blocks.release(block);
  EXPECT_DEATH(blocks.release(block), "freed twice");
  EXPECT_DEATH(blocks.retain(block), "can't be shared");
}

}  // namespace
}  // namespace trtmc
