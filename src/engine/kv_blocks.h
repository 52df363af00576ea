// Hands out fixed-size blocks of KV memory by number. Knows nothing of the memory itself, which
// belongs to the executor. Used by the engine thread only.
#pragma once

#include <optional>
#include <vector>

#include "backends/backend.h"

namespace trtmc {

class KvBlocks {
 public:
  explicit KvBlocks(int num_blocks);

  // One block with one reference, or nothing if all are taken.
  std::optional<BlockId> try_allocate();
  void retain(BlockId block);
  void release(BlockId block);  // The last release frees it.

  int num_blocks() const { return static_cast<int>(references_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }
  int references(BlockId block) const { return references_[static_cast<size_t>(block)]; }

 private:
  std::vector<int> references_;  // [num_blocks]
  std::vector<BlockId> free_;    // A stack: the warmest block goes out first.
};

}  // namespace trtmc
