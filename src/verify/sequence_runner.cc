#include "verify/sequence_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "verify/metrics.h"

namespace trtmc {

SequenceRunner::SequenceRunner(Executor& executor, int max_tokens_per_step)
    : executor_(executor),
      max_tokens_per_step_(executor.limits().max_tokens_per_step),
      block_table_(static_cast<size_t>(executor.limits().num_blocks)) {
  if (max_tokens_per_step > 0) {
    max_tokens_per_step_ = std::min(max_tokens_per_step_, max_tokens_per_step);
  }
  std::iota(block_table_.begin(), block_table_.end(), BlockId{0});
}

void SequenceRunner::run(std::span<const TokenId> tokens, int start, std::span<const int> wanted,
                         OnRow on_row) {
  const Limits limits = executor_.limits();
  const int64_t end = start + static_cast<int64_t>(tokens.size());
  const int64_t room = int64_t{limits.num_blocks} * limits.block_size;
  if (end > room) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a sequence of {} tokens, but KV memory holds {}", end, room),
                "give more with --kv-memory or --context");
  }
  for (size_t done = 0; done < tokens.size();) {
    const size_t count = std::min(tokens.size() - done, static_cast<size_t>(max_tokens_per_step_));
    step_start_ = start + static_cast<int>(done);
    const auto first = std::lower_bound(wanted.begin(), wanted.end(), step_start_);
    const auto last =
        std::lower_bound(wanted.begin(), wanted.end(), step_start_ + static_cast<int>(count));
    run_step(tokens.subspan(done, count), {first, last}, on_row);
    done += count;
  }
}

void SequenceRunner::run_step(std::span<const TokenId> tokens, std::span<const int> wanted,
                              OnRow on_row) {
  std::vector<int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), step_start_);
  const std::array<int32_t, 2> starts{0, static_cast<int32_t>(tokens.size())};
  std::vector<int32_t> rows(wanted.begin(), wanted.end());
  for (int32_t& row : rows) row -= step_start_;
  executor_.submit({.tokens = tokens,
                    .positions = positions,
                    .sequence_starts = starts,
                    .block_tables = block_table_,
                    .max_blocks = static_cast<int>(block_table_.size()),
                    .logits_rows = rows,
                    .adapters = {}});
  const Logits& logits = executor_.wait();
  row_.resize(static_cast<size_t>(logits.vocab_size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    logits.copy_row(static_cast<int>(i), row_);
    on_row(wanted[i], row_);
  }
}

std::vector<TokenId> SequenceRunner::choices_along(std::span<const TokenId> prompt,
                                                   std::span<const TokenId> text) {
  std::vector<TokenId> out;
  if (text.empty()) return out;
  const auto take = [&](int, std::span<const float> logits) { out.push_back(argmax(logits)); };
  int position = static_cast<int>(prompt.size()) - 1;
  run(prompt, 0, std::span(&position, 1), take);
  for (const TokenId& token : text.first(text.size() - 1)) {
    ++position;
    run(std::span(&token, 1), position, std::span(&position, 1), take);
  }
  return out;
}

std::vector<TokenId> SequenceRunner::continue_greedily(std::span<const TokenId> prompt,
                                                       size_t count) {
  std::vector<TokenId> out;
  if (count == 0) return out;
  const auto take = [&](int, std::span<const float> logits) { out.push_back(argmax(logits)); };
  int position = static_cast<int>(prompt.size()) - 1;
  run(prompt, 0, std::span(&position, 1), take);
  while (out.size() < count) {
    ++position;
    const TokenId token = out.back();
    run(std::span(&token, 1), position, std::span(&position, 1), take);
  }
  return out;
}

}  // namespace trtmc
