// Log-likelihood and perplexity of token ids: what `score` prints and what echo with logprobs
// returns.
#pragma once

#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/loaded_model.h"

namespace trtmc {

struct TextScore {
  std::vector<double>
      token_logprobs;      // [ids]; the first of each window is NaN: nothing precedes it.
  double logprob_sum = 0;  // Of those that are not NaN, natural logarithm.
  int scored = 0;
  void add_up();              // Sets the two from token_logprobs.
  double perplexity() const;  // exp(-logprob_sum / scored); NaN if nothing was scored.
};

// Scores `ids` in disjoint windows of `window` tokens (0: one window for all). Nothing else may use
// the executor meanwhile. Throws kInvalidArgument for a window that does not fit the context and
// for ids outside the vocabulary.
TextScore score_tokens(const EngineModel& model, std::span<const TokenId> ids, int window);
TextScore score_tokens(const LoadedModel& model, std::span<const TokenId> ids, int window);

// The same through an engine that runs `model`, beside whatever else it runs. Its windows must be
// shorter than the context, since the engine looks for room for an answer.
TextScore score_tokens(Engine& engine, const EngineModel& model, std::span<const TokenId> ids,
                       int window);

}  // namespace trtmc
