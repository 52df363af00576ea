// The pass of scores: logits with biases, penalties and mask, and the largest of them.
#pragma once

#include <cmath>

#include "backends/cuda/kernels/sample_part.h"

namespace trtmc::cuda {

template <typename Block>
class SampleScores : private SamplePart<Block> {
 public:
  using SamplePart<Block>::SamplePart;

  TRTMC_STEP void run() {
    if (job_.scores != nullptr) adjust_scores();
    find_best();
  }

 private:
  using Part = SamplePart<Block>;
  using Part::block_, Part::shared_, Part::job_, Part::state_, Part::begin, Part::end,
      Part::each_token, Part::key;

  TRTMC_STEP void adjust_scores() {
    const auto is_here = [&](int token) { return token >= begin() && token < end(); };
    float* scores = job_.scores;
    block_.each([&](int t) { each_token(t, [&](int i) { scores[i] = job_.logits[i]; }); });
    // A token may have several biases: one thread adds them, in their order.
    block_.each([&](int t) {
      for (int b = 0; b < job_.num_biases; ++b) {
        const TokenBias of = job_.biases[b];
        if (of.token % kSampleThreads == t && is_here(of.token)) {
          scores[of.token] = sum(scores[of.token], of.bias);
        }
      }
    });
    block_.each([&](int t) {
      for (int p = t; p < job_.num_prompt_tokens; p += kSampleThreads) {
        const int token = job_.prompt_tokens[p];
        if (is_here(token)) scores[token] = repeated_score(scores[token], job_.repetition_penalty);
      }
    });
    block_.each([&](int t) {
      for (int c = t; c < job_.num_seen; c += kSampleThreads) {
        const TokenSeen of = job_.seen[c];
        if (!is_here(of.token)) continue;
        float value = scores[of.token];
        if (of.in_prompt == 0) value = repeated_score(value, job_.repetition_penalty);
        scores[of.token] =
            counted_score(value, of.count, job_.presence_penalty, job_.frequency_penalty);
      }
    });
    if (job_.allowed == nullptr) return;
    block_.each([&](int t) {
      each_token(t, [&](int i) {
        const bool allowed =
            i / 32 < job_.num_allowed_words && (job_.allowed[i / 32] >> (i % 32) & 1) != 0;
        if (!allowed) scores[i] = -INFINITY;
      });
    });
  }

  TRTMC_STEP void find_best() {
    const auto larger = [](uint64_t a, uint64_t b) { return a > b ? a : b; };
    block_.each([&](int t) {
      uint64_t best = 0;
      each_token(t, [&](int i) {
        const uint64_t of = uint64_t{key(i)} << 32 | ~static_cast<uint32_t>(i);
        if (of >> 32 != 0) best = larger(best, of);
      });
      shared_.sums[t] = best;
    });
    constexpr int kGroup = SampleShared::kGroup, kGroups = SampleShared::kGroups;
    block_.each([&](int t) {
      if (t >= kGroups) return;
      uint64_t best = 0;
      for (int i = 0; i < kGroup; ++i) best = larger(best, shared_.sums[t * kGroup + i]);
      shared_.groups[t] = best;
    });
    block_.each([&](int t) {
      if (t > 0) return;
      uint64_t best = 0;
      for (int i = 0; i < kGroups; ++i) best = larger(best, shared_.groups[i]);
      if (best != 0) block_.max(&state_.best, best);
    });
  }
};

}  // namespace trtmc::cuda
