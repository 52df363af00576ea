#include "engine/kv_blocks.h"

#include "base/check.h"

namespace trtmc {

KvBlocks::KvBlocks(int num_blocks) {
  TRTMC_CHECK(num_blocks >= 0, "a negative number of blocks");
  references_.resize(static_cast<size_t>(num_blocks));
  free_.reserve(static_cast<size_t>(num_blocks));
  for (BlockId block = num_blocks; block-- > 0;) free_.push_back(block);
}

std::optional<BlockId> KvBlocks::try_allocate() {
  if (free_.empty()) return std::nullopt;
  const BlockId block = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void KvBlocks::retain(BlockId block) {
  TRTMC_CHECK(block >= 0 && block < num_blocks(), "no such block");
  TRTMC_CHECK(references(block) > 0, "a free block can't be shared");
  ++references_[static_cast<size_t>(block)];
}

void KvBlocks::release(BlockId block) {
  TRTMC_CHECK(block >= 0 && block < num_blocks(), "no such block");
  TRTMC_CHECK(references(block) > 0, "a block was freed twice");
  if (--references_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

}  // namespace trtmc
