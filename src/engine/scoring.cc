#include "engine/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "engine/text_steps.h"

namespace trtmc {
namespace {

// Scores one window, which starts a sequence of its own. logprobs: [window]; [0] is left alone.
void score_window(TextSteps& steps, std::span<const TokenId> window, std::span<double> logprobs) {
  // Nothing follows the last token, so it need not be computed.
  for (size_t start = 0; start + 1 < window.size(); start += steps.max_tokens()) {
    const size_t count = std::min(steps.max_tokens(), window.size() - 1 - start);
    const Logits& logits = steps.run(window, start, count);
    std::vector<ScoreRow> rows;
    for (size_t i = 0; i < count; ++i) {
      rows.push_back({static_cast<int>(i), window[start + i + 1], 0});
    }
    std::vector<TokenScore> scores(count);
    logits.score(rows, scores);
    for (size_t i = 0; i < count; ++i) logprobs[start + i + 1] = scores[i].logprob;
  }
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
  score.add_up();
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

void TextScore::add_up() {
  logprob_sum = 0;
  scored = 0;
  for (const double logprob : token_logprobs) {
    if (std::isnan(logprob)) continue;
    logprob_sum += logprob;
    ++scored;
  }
}

double TextScore::perplexity() const {
  if (scored == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::exp(-logprob_sum / scored);
}

TextScore score_tokens(const EngineModel& model, std::span<const TokenId> ids, int window) {
  check_ids(ids, "text", model.vocab_size);
  const size_t size = checked_window(ids, window, static_cast<size_t>(model.longest_sequence()));
  TextSteps steps(model, std::min(size, ids.size()));
  return score_windows(ids, size, [&](std::span<const TokenId> tokens, std::span<double> logprobs) {
    score_window(steps, tokens, logprobs);
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
