// A text through an executor, some of its tokens at a time, with the logits of each. Private to
// this folder.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/step_arrays.h"

namespace trtmc {

// Tokens of a window of `ids` in a context of `longest`; `window` 0: all of them. Throws
// kInvalidArgument.
size_t checked_window(std::span<const TokenId> ids, int window, size_t longest);

class TextSteps {
 public:
  // For windows of at most `window` tokens. Nothing else may use the executor meanwhile.
  TextSteps(const EngineModel& model, size_t window);

  size_t max_tokens() const { return max_tokens_; }  // Of a step.

  // Runs tokens [start, start + count) of `window`, those before them having been run; with start 0
  // a new sequence begins. The logits, one row for each token, are valid until the next call.
  const Logits& run(std::span<const TokenId> window, size_t start, size_t count);

 private:
  Executor& executor_;
  size_t max_tokens_;
  std::vector<BlockId> blocks_;
  StepArrays arrays_;
};

}  // namespace trtmc
