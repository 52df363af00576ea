// How far one model's predictions are from another's over a text: what `score --against` prints.
#pragma once

#include <span>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/scoring.h"

namespace trtmc {

// At every token that has one before it in its window. Divergences are those of Kullback and
// Leibler, with the other model's distribution as the truth, in nats:
//
//   KL(other || model) = sum over the vocabulary of p_other (log p_other - log p_model)
struct ModelComparison {
  TextScore score;                  // Of the model, as score_tokens() gives it.
  TextScore other;                  // Of the other one.
  std::vector<double> divergences;  // [score.scored]
  int same_top = 0;                 // How often both find the same token likeliest.

  // NaN where nothing was scored.
  double mean_divergence() const;
  double largest_divergence() const;
  // Below which a part `q` of 0 to 1 of them lies, interpolated between neighbours as by
  // numpy.quantile.
  double divergence_quantile(double q) const;
  double top_agreement() const;  // 0 to 1.
};

// As score_tokens(), by both models. They must have the same vocabulary.
ModelComparison compare_models(const EngineModel& model, const EngineModel& other,
                               std::span<const TokenId> ids, int window);

// The divergence of two distributions given by their logits, [vocabulary] each.
double divergence(std::span<const float> truth, std::span<const float> logits);

// Throws kInvalidArgument naming both unless they read and write the same tokens.
void check_same_tokenizer(const Bundle& bundle, const Bundle& other);

}  // namespace trtmc
