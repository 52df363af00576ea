#include "engine/text_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace trtmc {
namespace {

// All of a step's logits are wanted, and a row is a whole vocabulary.
constexpr int kMostScoredTokens = 64;

}  // namespace

size_t checked_window(std::span<const TokenId> ids, int window, size_t longest) {
  const size_t size = window == 0 ? ids.size() : static_cast<size_t>(std::max(window, 0));
  if (window >= 0 && size <= longest) return size;
  throw Error(ErrorCode::kInvalidArgument,
              window == 0 ? fmt::format("the text has {} tokens, but the context {}", size, longest)
                          : fmt::format("window: {}, expected a number from 1 to the context's {}",
                                        window, longest),
              window == 0 ? "score it in windows" : "");
}

TextSteps::TextSteps(const EngineModel& model, size_t window)
    : executor_(*model.executor),
      max_tokens_(static_cast<size_t>(
          std::min(model.executor->limits().max_tokens_per_step, kMostScoredTokens))) {
  const auto block_size = static_cast<size_t>(executor_.limits().block_size);
  blocks_.resize((window + block_size - 1) / block_size);
  std::iota(blocks_.begin(), blocks_.end(), 0);
}

const Logits& TextSteps::run(std::span<const TokenId> window, size_t start, size_t count) {
  arrays_.clear();
  arrays_.add(window.subspan(start, count), {}, static_cast<int>(start), blocks_, 0);
  executor_.submit(arrays_.batch());
  return executor_.wait();
}

}  // namespace trtmc
