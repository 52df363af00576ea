// An executor without a model: the logits after a token are a function of the ids up to it, which
// it reads back through the block tables as a model reads its keys and values. As keys and values
// do, each position holds what follows from all the tokens before it, and this is checked whenever
// it is read: a wrong table, a missed copy, a stale block or one of another prefix is an abort.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/host_logits.h"
#include "base/error.h"

namespace trtmc {

// From the ids up to and with the row's own to the row's logits, [vocab_size].
using LogitsFunction = std::function<std::vector<float>(std::span<const TokenId> ids)>;

// Logits in [-4, 4), different for every history; no two equal in one row.
std::vector<float> hashed_logits(std::span<const TokenId> ids, int vocab_size);

class FakeExecutor final : public Executor {
 public:
  // Empty `function`: hashed_logits.
  FakeExecutor(int vocab_size, const Limits& limits, LogitsFunction function = {});

  Limits limits() const override { return limits_; }
  MemoryUse memory() const override { return {}; }
  void submit(const StepBatch& batch) override;
  const Logits& wait() override;
  void copy_block(BlockId from, BlockId to) override;
  std::string description() const override { return "fake"; }

  // The next wait() or copy_block() throws it. Set from any thread before a step starts, or by
  // `during_step`.
  void fail_next_step(Error error) { step_failure_ = std::move(error); }
  void fail_next_copy(Error error) { copy_failure_ = std::move(error); }
  // Called by wait() with the number of steps before this one.
  std::function<void(int step)> during_step;

  int num_steps() const { return num_steps_; }
  int num_tokens() const { return num_tokens_; }  // Computed in all steps.
  int num_copies() const { return num_copies_; }
  int widest_step() const { return widest_step_; }  // In sequences.

 private:
  struct Slot {
    TokenId token = -1;
    uint64_t history = 0;  // A hash of the ids up to and with its own.
  };

  Slot& slot(const StepBatch& batch, size_t sequence, int position);
  std::vector<TokenId> history(const StepBatch& batch, size_t sequence, int position);

  int vocab_size_;
  Limits limits_;
  LogitsFunction function_;
  std::vector<Slot> slots_;  // [num_blocks, block_size]
  std::vector<float> values_;
  HostLogits logits_;
  bool running_ = false;
  std::optional<Error> step_failure_, copy_failure_;
  std::atomic<int> num_steps_ = 0, num_tokens_ = 0, num_copies_ = 0, widest_step_ = 0;
};

}  // namespace trtmc
