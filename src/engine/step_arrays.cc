#include "engine/step_arrays.h"

#include <algorithm>

namespace trtmc {

void StepArrays::clear() {
  tokens_.clear();
  positions_.clear();
  starts_.assign(1, 0);
  blocks_.clear();
  blocks_starts_.assign(1, 0);
  logits_rows_.clear();
}

void StepArrays::add(std::span<const TokenId> tokens, std::span<const TokenId> drafts, int start,
                     std::span<const BlockId> blocks, int logits_from) {
  const auto first = static_cast<int>(tokens_.size());
  const auto count = static_cast<int>(tokens.size() + drafts.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  tokens_.insert(tokens_.end(), drafts.begin(), drafts.end());
  for (int i = 0; i < count; ++i) positions_.push_back(start + i);
  for (int i = logits_from; i < count; ++i) logits_rows_.push_back(first + i);
  starts_.push_back(first + count);
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
  blocks_starts_.push_back(blocks_.size());
}

const StepBatch& StepArrays::batch() {
  const size_t num_sequences = starts_.size() - 1;
  size_t width = 0;
  for (size_t s = 0; s < num_sequences; ++s) {
    width = std::max(width, blocks_starts_[s + 1] - blocks_starts_[s]);
  }
  // Not assign(), which makes room for just as many and so again each time that a table grows.
  tables_.resize(num_sequences * width);
  std::ranges::fill(tables_, 0);
  for (size_t s = 0; s < num_sequences; ++s) {
    std::copy(blocks_.begin() + static_cast<std::ptrdiff_t>(blocks_starts_[s]),
              blocks_.begin() + static_cast<std::ptrdiff_t>(blocks_starts_[s + 1]),
              tables_.begin() + static_cast<std::ptrdiff_t>(s * width));
  }
  batch_ = {.tokens = tokens_,
            .positions = positions_,
            .sequence_starts = starts_,
            .block_tables = tables_,
            .max_blocks = static_cast<int>(width),
            .logits_rows = logits_rows_,
            .adapters = {}};
  return batch_;
}

}  // namespace trtmc
