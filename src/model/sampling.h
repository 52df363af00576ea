// From logits to a token, the same on every backend: equal logits, parameters and draw give equal
// tokens.
//
// Order, after Transformers' processors and warpers with OpenAI's bias in front:
//   logit bias, repetition penalty, presence and frequency penalties, allowed mask, temperature,
//   top-k, top-p, min-p, draw.
// Temperature 0 takes the largest logit after the mask, the smaller id of equals. A logit that is
// NaN counts as minus infinity. If nothing is left, the smallest id that the mask allows is taken;
// where no logit was above minus infinity from the start there is no token.
//
// The filters keep what Transformers' warpers keep: top-k every token that is as likely as the
// k-th; top-p the smallest set of the most likely tokens with a mass of at least top_p (of equals
// the smaller ids), and at least one; min-p those at least min_p times as likely as the most
// likely. How likely is in fixed point (model/sampling_math.h), so that hosts and devices agree to
// the last bit: what is less than 2^-47 times as likely as the most likely token (of 128k; a bit
// more for larger vocabularies) is never drawn.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/token.h"

namespace trtmc {

struct SamplingParams {
  double temperature = 1;
  int top_k = 0;     // 0: no limit.
  double top_p = 1;  // 1: no limit.
  double min_p = 0;  // 0: no limit.
  double repetition_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<TokenId, float>> logit_bias{};
  uint64_t seed = 0;
  bool operator==(const SamplingParams&) const = default;
};

// Throws kInvalidArgument naming the parameter that is out of its range.
void validate(const SamplingParams& params);

// Whether tokens that were there before are treated differently, so that they must be counted.
bool has_penalties(const SamplingParams& params);

// A token of an answer, and how often it is there.
struct TokenCount {
  TokenId token;
  int count;
  bool in_prompt;  // It is one of SampleRow::prompt_tokens too.
};

// Everything that a sampler on any device needs for one row of logits.
struct SampleRow {
  int row;  // Index among the step's rows with logits.
  const SamplingParams* params;
  uint64_t draw;                       // Index of the random draw: one per generated token.
  std::span<const TokenCount> counts;  // Of the answer so far, each token once.
  std::span<const uint32_t> allowed;   // Bit mask over the vocabulary; empty: every token.
  int top_logprobs;  // How many of the most likely tokens to report; -1: not even `logprob`.
  // Each token of the prompt once. The repetition penalty is of prompt and answer, the other two of
  // the answer alone.
  std::span<const TokenId> prompt_tokens = {};
};

// Whether penalties, or anything else, make scores of a row's logits that are not the logits.
bool penalties_change_scores(const SampleRow& row);
bool changes_scores(const SampleRow& row);

// `logprob` and `top` are those of the model's own distribution: before bias, penalties and
// temperature. Without logprobs asked for, `logprob` is 0.
struct Sampled {
  TokenId token;  // -1: there is none, since the logits are no numbers.
  float logprob;
  std::vector<TokenLogprob> top;  // Most likely first.
};

// logits: [vocab]; left as they are.
Sampled sample_token(std::span<const float> logits, const SampleRow& row);

struct TokenProbability {
  TokenId token;
  double probability;
};

// What sample_token draws from: every token that the filters leave, ids rising, summing to 1. One
// token at temperature 0, none where sample_token finds none.
std::vector<TokenProbability> sampling_distribution(std::span<const float> logits,
                                                    const SampleRow& row);

// The `count` most likely tokens, most likely first, the smaller id of equals first.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int count);

// log softmax(logits)[token]. The sum is of masses.
double log_probability(std::span<const float> logits, TokenId token);

// What turns logits into log-probabilities: the largest logit and log(sum(exp(logit - largest))).
// Kept apart, since next to a large logit the sum would be lost. NaN is left out.
class Normaliser {
 public:
  Normaliser() = default;  // Where every logit is minus infinity or no number.
  // total: of the masses of all logits at temperature 1.
  Normaliser(float highest, int bits, uint64_t total);
  double logprob(float logit) const;

 private:
  double highest_ = -std::numeric_limits<double>::infinity(), log_sum_ = 0;
};

// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The `draw`-th uniform number in [0, 1) of the generator keyed by `seed`: Philox at counter
// `draw`, the upper 53 bits of its first two words.
double uniform_draw(uint64_t seed, uint64_t draw);
// The same as a fraction of 64 bits.
uint64_t uniform_bits(uint64_t seed, uint64_t draw);

}  // namespace trtmc
