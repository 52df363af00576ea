// The flat arrays of a StepBatch, filled sequence by sequence and kept from step to step.
#pragma once

#include <span>
#include <vector>

#include "backends/backend.h"

namespace trtmc {

class StepArrays {
 public:
  void clear();

  // One sequence's tokens at positions from `start` on, then drafts, in the blocks of its table.
  // Logits are wanted of the token with index `logits_from` and of those after it.
  void add(std::span<const TokenId> tokens, std::span<const TokenId> drafts, int start,
           std::span<const BlockId> blocks, int logits_from);

  // Valid until the next call of any other member.
  const StepBatch& batch();

 private:
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> starts_ = {0};
  std::vector<BlockId> blocks_;              // The sequences' tables one after the other.
  std::vector<size_t> blocks_starts_ = {0};  // Where each begins in blocks_.
  std::vector<BlockId> tables_;              // The same as a rectangle.
  std::vector<int32_t> logits_rows_;
  StepBatch batch_{};
};

}  // namespace trtmc
