#include "tests/support/fake_executor.h"

#include <set>
#include <utility>

#include "backends/step_limits.h"
#include "base/check.h"

namespace trtmc {
namespace {

// FNV-1a.
constexpr uint64_t kEmptyHistory = 0xcbf29ce484222325;

uint64_t extend_history(uint64_t history, TokenId token) {
  return (history ^ static_cast<uint64_t>(token)) * 0x100000001b3;
}

}  // namespace

std::vector<float> hashed_logits(std::span<const TokenId> ids, int vocab_size) {
  uint64_t hash = kEmptyHistory;
  for (const TokenId id : ids) hash = extend_history(hash, id);
  std::vector<float> logits(static_cast<size_t>(vocab_size));
  for (size_t token = 0; token < logits.size(); ++token) {
    logits[token] = static_cast<float>(uniform_draw(hash, token) * 8 - 4);
  }
  return logits;
}

FakeExecutor::FakeExecutor(int vocab_size, const Limits& limits, LogitsFunction function)
    : vocab_size_(vocab_size), limits_(limits), function_(std::move(function)) {
  if (!function_) {
    function_ = [vocab_size](std::span<const TokenId> ids) {
      return hashed_logits(ids, vocab_size);
    };
  }
  slots_.resize(static_cast<size_t>(limits.num_blocks) * static_cast<size_t>(limits.block_size));
}

FakeExecutor::Slot& FakeExecutor::slot(const StepBatch& batch, size_t sequence, int position) {
  const BlockId block = batch.block_tables[sequence * static_cast<size_t>(batch.max_blocks) +
                                           static_cast<size_t>(position / limits_.block_size)];
  return slots_[static_cast<size_t>(block * limits_.block_size + position % limits_.block_size)];
}

std::vector<TokenId> FakeExecutor::history(const StepBatch& batch, size_t sequence, int position) {
  std::vector<TokenId> ids;
  uint64_t hash = kEmptyHistory;
  for (int p = 0; p <= position; ++p) {
    const Slot& read = slot(batch, sequence, p);
    hash = extend_history(hash, read.token);
    TRTMC_CHECK(read.history == hash, "a position is read that was written after other tokens");
    ids.push_back(read.token);
  }
  return ids;
}

void FakeExecutor::submit(const StepBatch& batch) {
  TRTMC_CHECK(!running_, "a step is submitted while another one runs");
  DecoderSpec spec{};
  spec.vocab_size = vocab_size_;
  spec.context_length = limits_.num_blocks * limits_.block_size;
  check_step(batch, spec, limits_);
  num_tokens_ += static_cast<int>(batch.tokens.size());
  const int num_sequences = static_cast<int>(batch.sequence_starts.size()) - 1;
  widest_step_ = std::max(widest_step_.load(), num_sequences);

  std::set<const Slot*> written;
  std::vector<size_t> owner(batch.tokens.size());
  for (size_t s = 0; s + 1 < batch.sequence_starts.size(); ++s) {
    for (auto i = batch.sequence_starts[s]; i < batch.sequence_starts[s + 1]; ++i) {
      const auto token = static_cast<size_t>(i);
      owner[token] = s;
      const int position = batch.positions[token];
      Slot& target = slot(batch, s, position);
      TRTMC_CHECK(written.insert(&target).second, "two tokens of a step are written to one place");
      const uint64_t before = position == 0 ? kEmptyHistory : slot(batch, s, position - 1).history;
      target = {batch.tokens[token], extend_history(before, batch.tokens[token])};
    }
  }
  // Every token reads those before it, whether its logits are wanted or not.
  for (size_t s = 0; s + 1 < batch.sequence_starts.size(); ++s) {
    history(batch, s, batch.positions[static_cast<size_t>(batch.sequence_starts[s + 1]) - 1]);
  }
  values_.clear();
  for (const int32_t row : batch.logits_rows) {
    const auto token = static_cast<size_t>(row);
    const auto logits = function_(history(batch, owner[token], batch.positions[token]));
    values_.insert(values_.end(), logits.begin(), logits.end());
  }
  logits_ =
      HostLogits(values_, static_cast<int>(batch.logits_rows.size()), vocab_size_, vocab_size_);
  running_ = true;  // Not before all that may find no memory.
}

const Logits& FakeExecutor::wait() {
  TRTMC_CHECK(running_, "no step was submitted");
  running_ = false;
  if (during_step) during_step(num_steps_);
  ++num_steps_;
  if (step_failure_) throw *std::exchange(step_failure_, std::nullopt);
  return logits_;
}

void FakeExecutor::copy_block(BlockId from, BlockId to) {
  TRTMC_CHECK(!running_, "a block is copied during a step");
  if (copy_failure_) throw *std::exchange(copy_failure_, std::nullopt);
  ++num_copies_;
  const auto size = static_cast<size_t>(limits_.block_size);
  for (size_t i = 0; i < size; ++i) {
    slots_[static_cast<size_t>(to) * size + i] = slots_[static_cast<size_t>(from) * size + i];
  }
}

}  // namespace trtmc
