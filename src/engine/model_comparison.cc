#include "engine/model_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "engine/text_steps.h"
#include "model/sampling.h"

namespace trtmc {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// The logarithm of what divides exp(logit) to make a probability.
double log_normaliser(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

// Two models side by side over one text.
class Comparer {
 public:
  Comparer(const EngineModel& model, const EngineModel& other, size_t window)
      : ours_(model, window),
        theirs_(other, window),
        step_(std::min(ours_.max_tokens(), theirs_.max_tokens())),
        our_row_(static_cast<size_t>(model.vocab_size)),
        their_row_(our_row_.size()) {}

  // `first` is which of all ids the window begins with.
  void compare(std::span<const TokenId> window, size_t first, ModelComparison& result) {
    // Nothing follows the last token, so it need not be computed.
    for (size_t start = 0; start + 1 < window.size(); start += step_) {
      const size_t count = std::min(step_, window.size() - 1 - start);
      const Logits& ours = ours_.run(window, start, count);
      const Logits& theirs = theirs_.run(window, start, count);
      for (size_t i = 0; i < count; ++i) {
        ours.copy_row(static_cast<int>(i), our_row_);
        theirs.copy_row(static_cast<int>(i), their_row_);
        add(window[start + i + 1], first + start + i + 1, result);
      }
    }
  }

 private:
  void add(TokenId target, size_t index, ModelComparison& result) const {
    result.score.token_logprobs[index] = log_probability(our_row_, target);
    result.other.token_logprobs[index] = log_probability(their_row_, target);
    result.divergences.push_back(divergence(their_row_, our_row_));
    const auto our_top = std::max_element(our_row_.begin(), our_row_.end()) - our_row_.begin();
    const auto their_top =
        std::max_element(their_row_.begin(), their_row_.end()) - their_row_.begin();
    result.same_top += our_top == their_top ? 1 : 0;
  }

  TextSteps ours_, theirs_;
  size_t step_;
  std::vector<float> our_row_, their_row_;
};

}  // namespace

double ModelComparison::mean_divergence() const {
  if (divergences.empty()) return kNothing;
  return std::accumulate(divergences.begin(), divergences.end(), 0.0) /
         static_cast<double>(divergences.size());
}

double ModelComparison::largest_divergence() const {
  return divergences.empty() ? kNothing : *std::max_element(divergences.begin(), divergences.end());
}

double ModelComparison::divergence_quantile(double q) const {
  TRTMC_CHECK(q >= 0 && q <= 1, "a part of all");
  if (divergences.empty()) return kNothing;
  std::vector<double> sorted = divergences;
  std::sort(sorted.begin(), sorted.end());
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - std::floor(place));
}

double ModelComparison::top_agreement() const {
  if (divergences.empty()) return kNothing;
  return same_top / static_cast<double>(divergences.size());
}

double divergence(std::span<const float> truth, std::span<const float> logits) {
  TRTMC_CHECK(truth.size() == logits.size() && !truth.empty(), "two rows of one vocabulary");
  const double true_normaliser = log_normaliser(truth);
  const double normaliser = log_normaliser(logits);
  double sum = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double logprob = truth[i] - true_normaliser;
    const double probability = std::exp(logprob);
    if (probability > 0) sum += probability * (logprob - (logits[i] - normaliser));
  }
  return std::max(sum, 0.0);  // Below it by rounding only.
}

ModelComparison compare_models(const EngineModel& model, const EngineModel& other,
                               std::span<const TokenId> ids, int window) {
  TRTMC_CHECK(model.vocab_size == other.vocab_size, "two models of one vocabulary");
  check_ids(ids, "text", model.vocab_size);
  const int longest = std::min(model.longest_sequence(), other.longest_sequence());
  const size_t size = checked_window(ids, window, static_cast<size_t>(longest));
  ModelComparison result;
  result.score.token_logprobs.assign(ids.size(), kNothing);
  result.other.token_logprobs.assign(ids.size(), kNothing);
  Comparer comparer(model, other, std::min(size, ids.size()));
  for (size_t start = 0; start < ids.size(); start += size) {
    comparer.compare(ids.subspan(start, std::min(size, ids.size() - start)), start, result);
  }
  result.score.add_up();
  result.other.add_up();
  return result;
}

void check_same_tokenizer(const Bundle& bundle, const Bundle& other) {
  const auto ours = bundle.tokenizer_tables(), theirs = other.tokenizer_tables();
  if (bundle.spec().vocab_size == other.spec().vocab_size &&
      std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end())) {
    return;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} and {} have different tokenizers: their predictions are of different "
                          "tokens and can't be compared",
                          bundle.path().string(), other.path().string()),
              "compare bundles of one model, such as a quantised one with the one it is made of");
}

}  // namespace trtmc
