#include "engine/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "engine/step_arrays.h"

namespace trtmc {
namespace {

// Tokens a step: all of their logits are wanted, and a row is a whole vocabulary.
constexpr int kMostScoredTokens = 64;

// Scores one window, which starts a sequence of its own. logprobs: [window]; [0] is left alone.
void score_window(const EngineModel& model, std::span<const TokenId> window,
                  std::span<const BlockId> blocks, std::span<double> logprobs) {
  const auto chunk_size = static_cast<size_t>(
      std::min(model.executor->limits().max_tokens_per_step, kMostScoredTokens));
  StepArrays arrays;
  // Nothing follows the last token, so it need not be computed.
  for (size_t start = 0; start + 1 < window.size(); start += chunk_size) {
    const size_t count = std::min(chunk_size, window.size() - 1 - start);
    arrays.clear();
    arrays.add(window.subspan(start, count), {}, static_cast<int>(start), blocks, 0);
    model.executor->submit(arrays.batch());
    const Logits& logits = model.executor->wait();

    std::vector<ScoreRow> rows;
    for (size_t i = 0; i < count; ++i) {
      rows.push_back({static_cast<int>(i), window[start + i + 1], 0});
    }
    std::vector<TokenScore> scores(count);
    logits.score(rows, scores);
    for (size_t i = 0; i < count; ++i) logprobs[start + i + 1] = scores[i].logprob;
  }
}

// Tokens of a window of `ids` in a context of `longest`.
size_t checked_window(std::span<const TokenId> ids, int window, size_t longest) {
  const size_t size = window == 0 ? ids.size() : static_cast<size_t>(std::max(window, 0));
  if (window >= 0 && size <= longest) return size;
  throw Error(ErrorCode::kInvalidArgument,
              window == 0 ? fmt::format("the text has {} tokens, but the context {}", size, longest)
                          : fmt::format("window: {}, expected a number from 1 to the context's {}",
                                        window, longest),
              window == 0 ? "score it in windows" : "");
}

// Calls score(window, logprobs) with each window of `size` of `ids`.
template <typename ScoreWindow>
TextScore score_windows(std::span<const TokenId> ids, size_t size, ScoreWindow&& score_one) {
  TextScore score;
  score.token_logprobs.assign(ids.size(), std::numeric_limits<double>::quiet_NaN());
  for (size_t start = 0; start < ids.size(); start += size) {
    const size_t count = std::min(size, ids.size() - start);
    score_one(ids.subspan(start, count), std::span(score.token_logprobs).subspan(start, count));
  }
  for (const double logprob : score.token_logprobs) {
    if (std::isnan(logprob)) continue;
    score.logprob_sum += logprob;
    ++score.scored;
  }
  return score;
}

// As score_window(), by a request that asks for its prompt's scores.
void score_in_engine(Engine& engine, std::span<const TokenId> window, std::span<double> logprobs) {
  if (window.size() < 2) return;
  GenerationRequest request;
  request.prompt.assign(window.begin(), window.end());
  request.max_tokens = 1;  // The least that there is.
  request.echo_logprobs = true;
  TokenStream stream = engine.submit(std::move(request));
  while (const std::optional<TokenEvent> event = stream.next()) {
    if (event->finish == FinishReason::kError) throw Error(event->error_code, event->error);
  }
  const std::vector<TokenScore>& scores = stream.prompt_scores().tokens;
  for (size_t i = 0; i < scores.size(); ++i) logprobs[i + 1] = scores[i].logprob;
}

}  // namespace

double TextScore::perplexity() const {
  if (scored == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::exp(-logprob_sum / scored);
}

TextScore score_tokens(const EngineModel& model, std::span<const TokenId> ids, int window) {
  check_ids(ids, "text", model.vocab_size);
  const size_t size = checked_window(ids, window, static_cast<size_t>(model.longest_sequence()));
  const auto block_size = static_cast<size_t>(model.executor->limits().block_size);
  std::vector<BlockId> blocks((std::min(size, ids.size()) + block_size - 1) / block_size);
  std::iota(blocks.begin(), blocks.end(), 0);
  return score_windows(ids, size, [&](std::span<const TokenId> tokens, std::span<double> logprobs) {
    score_window(model, tokens, blocks, logprobs);
  });
}

TextScore score_tokens(Engine& engine, const EngineModel& model, std::span<const TokenId> ids,
                       int window) {
  check_ids(ids, "text", model.vocab_size);
  if (ids.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the text is empty: there is nothing to score");
  }
  const auto longest = static_cast<size_t>(model.longest_sequence()) - 1;
  const size_t size = checked_window(ids, window, longest);
  return score_windows(ids, size, [&](std::span<const TokenId> tokens, std::span<double> logprobs) {
    score_in_engine(engine, tokens, logprobs);
  });
}

TextScore score_tokens(const LoadedModel& model, std::span<const TokenId> ids, int window) {
  return score_tokens(model.engine_model(), ids, window);
}

}  // namespace trtmc
