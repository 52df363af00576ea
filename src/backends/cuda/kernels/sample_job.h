// What a device samples: a job is a row of logits and what is asked of it, and leaves its answer in
// a state. All plain memory: jobs and what they point to come over in one copy, states go back in
// one.
#pragma once

#include <cstdint>

namespace trtmc::cuda {

enum class SampleKind : int32_t {
  kGreedy,      // The token with the largest score.
  kDraw,        // One token of what the filters leave.
  kMostLikely,  // The sum of all masses and the most likely tokens: log-probabilities.
};

struct TokenBias {
  int32_t token;
  float bias;
};
struct TokenSeen {
  int32_t token;
  int32_t count;
  int32_t in_prompt;
};

struct SampleJob {
  SampleKind kind;
  int32_t vocab_size;
  const float* logits;  // [vocab_size]
  float* scores;        // [vocab_size], written; null: the logits are the scores.
  // What changes scores, in this order; each token once but in biases.
  const TokenBias* biases;
  const int32_t* prompt_tokens;
  const TokenSeen* seen;
  const uint32_t* allowed;  // null: every token.
  int32_t num_biases, num_prompt_tokens, num_seen, num_allowed_words;
  float repetition_penalty, presence_penalty, frequency_penalty;
  // Of kDraw; of kMostLikely what it takes them to be.
  int32_t mass_bits;
  double exponents_per_score;
  int64_t top_k;  // 0: no limit. Of kMostLikely: how many.
  double top_p;   // 1: no limit.
  uint64_t least_mass;
  uint64_t uniform;  // uniform_bits()
  // Of kMostLikely: the token whose logit is asked for; -1: the most likely one.
  int32_t target;
};

inline constexpr int kMostTopLogprobs = 20;

// Zero before the first pass, but for `token`, which is -1.
struct SampleState {
  uint64_t best;  // The largest score_key() above the complement of its token; 0: no scores.
  // Of a selection that is going on: the key's digits so far, and what is missing below them.
  uint64_t needed;
  uint32_t prefix;
  int32_t selecting;
  uint32_t kth_key;    // Of the top_k-th largest score; 0: no limit.
  uint32_t edge_key;   // Of the least likely token that the filters leave; 0: all above 0.
  uint64_t edge_kept;  // How many tokens of this key they leave, the smaller ids of them.
  uint64_t total;      // Of the masses.
  int32_t token;       // -1: none.
  float logit;         // The token's, before anything is changed.
  int32_t num_top;     // In any order.
  int32_t top_tokens[kMostTopLogprobs];
  float top_logits[kMostTopLogprobs];
};

// ---- Passes. A pass goes over all rows at once; kRowParts blocks share a row and the last of
// them to end decides.

enum class SamplePass : int32_t { kScores, kSelectTopK, kSelectTopP, kFinish };

// A key is selected digit by digit, the highest first.
inline constexpr int kDigits = 3;
inline constexpr int kDigitValues = 1 << 11;
constexpr int digit_bits(int digit) { return digit + 1 < kDigits ? 11 : 10; }
constexpr int digit_shift(int digit) { return digit + 1 < kDigits ? 21 - 11 * digit : 0; }

inline constexpr int kSampleThreads = 256;
inline constexpr int kRowParts = 32;

// A part's share of a row: its masses above the edge, and its tokens at the edge.
struct RowShare {
  uint64_t mass;
  uint64_t at_edge;
};

struct SamplePassArgs {
  SamplePass pass;
  int32_t digit;  // Of the selections.
  int32_t num_jobs;
  const SampleJob* jobs;  // [num_jobs]
  SampleState* states;    // [num_jobs]
  uint64_t* amounts;      // [num_jobs, kDigitValues], zero; zero again afterwards.
  RowShare* shares;       // [num_jobs, kRowParts]
  int32_t* arrived;       // [num_jobs], zero; zero again afterwards.
};

// Calls `run(pass, digit)` in the order in which passes follow each other.
template <typename Run>
void for_each_pass(bool top_k, bool top_p, Run run) {
  run(SamplePass::kScores, 0);
  for (int digit = 0; digit < kDigits && top_k; ++digit) run(SamplePass::kSelectTopK, digit);
  for (int digit = 0; digit < kDigits && top_p; ++digit) run(SamplePass::kSelectTopP, digit);
  run(SamplePass::kFinish, 0);
}

}  // namespace trtmc::cuda
