// Runs one sequence at a time on an executor, without an engine: what verification compares is the
// step itself.
#pragma once

#include <span>
#include <vector>

#include "backends/backend.h"
#include "base/function_ref.h"

namespace trtmc {

class SequenceRunner {
 public:
  using OnRow = FunctionRef<void(int position, std::span<const float> logits)>;

  // `max_tokens_per_step` (0: the executor's own) makes the chunks smaller.
  explicit SequenceRunner(Executor& executor, int max_tokens_per_step = 0);

  // Feeds `tokens` at the positions from `start`; everything before `start` was fed earlier. Shows
  // the logits of the positions in `wanted` (rising), each while its step is at hand. Throws
  // kInvalidArgument if the KV memory is too small for the sequence.
  void run(std::span<const TokenId> tokens, int start, std::span<const int> wanted, OnRow on_row);

  // The greedy continuation of `prompt`: `count` tokens whatever they are.
  std::vector<TokenId> continue_greedily(std::span<const TokenId> prompt, size_t count);

  // What would have been chosen instead of each token of `text`, which follows `prompt` and is fed
  // a token at a time.
  std::vector<TokenId> choices_along(std::span<const TokenId> prompt,
                                     std::span<const TokenId> text);

  // The first position of the step that runs now: what a probe of hidden states wants to know.
  int step_start() const { return step_start_; }

 private:
  void run_step(std::span<const TokenId> tokens, std::span<const int> wanted, OnRow on_row);

  Executor& executor_;
  int max_tokens_per_step_;
  int step_start_ = 0;
  std::vector<BlockId> block_table_;  // Block i holds positions from i * block_size: one sequence.
  std::vector<float> row_;            // [vocab]
};

}  // namespace trtmc
