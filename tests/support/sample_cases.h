// Rows of logits with what is asked of them, as random as they are odd: ties, infinities, NaN,
// zeros of both signs, masks of one token, penalties with counts, filters at their ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "model/sampling.h"

namespace trtmc {

struct SampleCase {
  std::vector<float> logits;
  SamplingParams params;
  std::vector<TokenId> prompt;
  std::vector<TokenCount> counts;
  std::vector<uint32_t> allowed;
  uint64_t draw = 0;
  int top_logprobs = -1;

  SampleRow row(int index) const {
    return {.row = index,
            .params = &params,
            .draw = draw,
            .counts = counts,
            .allowed = allowed,
            .top_logprobs = top_logprobs,
            .prompt_tokens = prompt};
  }
};

class SampleCases {
 public:
  SampleCases(uint32_t seed, int vocab_size) : random_(seed), vocab_size_(vocab_size) {}

  SampleCase next() {
    SampleCase of;
    of.logits = logits();
    of.draw = random_();
    of.params = params();
    if (chance(3)) add_penalties(of);
    if (chance(4)) add_mask(of.allowed);
    if (chance(3)) of.top_logprobs = pick({0, 1, 5, 20});
    return of;
  }

 private:
  bool chance(uint32_t one_in) { return random_() % one_in == 0; }
  template <typename T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[random_() % of.size()];
  }
  TokenId token() { return static_cast<TokenId>(random_() % static_cast<uint32_t>(vocab_size_)); }

  std::vector<float> logits() {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> of(static_cast<size_t>(vocab_size_));
    std::normal_distribution<float> normal(0, pick({0.01F, 1.0F, 2.5F, 8.0F, 1e20F}));
    const float step = pick({0.0F, 0.0F, 0.25F, 1.0F, 5.0F});  // Not 0: many ties.
    for (float& x : of) {
      x = normal(random_);
      if (step > 0) x = std::round(x / step) * step;
    }
    const auto strew = [&](float value, int times) {
      for (int i = 0; i < times; ++i) of[static_cast<size_t>(token())] = value;
    };
    switch (random_() % 13) {
      case 0:
        std::ranges::fill(of, 1.5F);
        break;
      case 1:
        std::ranges::fill(of, -kInf);
        break;
      case 2:
        strew(kInf, 3);
        break;
      case 3:
        strew(kNan, vocab_size_ / 3);
        break;
      case 4:
        strew(-kInf, vocab_size_ * 3);
        break;
      case 5:
        std::ranges::fill(of, -kInf);
        strew(normal(random_), 2);
        break;
      case 6:
        strew(0.0F, vocab_size_), strew(-0.0F, vocab_size_);
        break;
      case 7:
        strew(20, 30);
        break;
      case 8:
        std::ranges::fill(of, kNan);
        break;
      case 9:  // The edge of a nucleus is among equals that are far less likely than the first.
        std::ranges::fill(of, -9.7F);
        strew(0, 1);
        break;
      default:
        break;
    }
    return of;
  }

  SamplingParams params() {
    SamplingParams of;
    of.temperature = pick({0.0, 1.0, 0.7, 1.0, 0.6, 2.0, 1e-300, 1e-3, 1e308});
    if (chance(2)) of.top_k = pick({1, 2, 20, 50, 1000, vocab_size_, vocab_size_ + 1});
    if (chance(2)) of.top_p = pick({0.0, 1e-9, 0.1, 0.5, 0.9, 0.95, 1 - 1e-12});
    if (chance(3)) of.min_p = pick({1e-18, 0.01, 0.05, 0.5, 1.0});
    of.seed = uint64_t{random_()} << 32 | random_();
    if (chance(5)) {
      for (int i = 0; i < 20; ++i) {
        of.logit_bias.emplace_back(token(), pick({-100.0F, -0.3F, 0.1F, 5.0F, 100.0F}));
        if (chance(4)) of.logit_bias.push_back({of.logit_bias.back().first, 0.7F});
      }
    }
    return of;
  }

  void add_penalties(SampleCase& of) {
    of.params.repetition_penalty = pick({1.0, 1.1, 0.5, 3e38});
    of.params.presence_penalty = pick({0.0, 0.3, -2.0});
    of.params.frequency_penalty = pick({0.0, 0.1, 2.0, -0.7});
    std::vector<TokenId> seen;
    for (int i = 0; i < 40; ++i) seen.push_back(token());
    std::ranges::sort(seen);
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (const TokenId id : seen) {
      const bool in_prompt = chance(2);
      if (in_prompt) of.prompt.push_back(id);
      if (!in_prompt || chance(2)) {
        of.counts.push_back({id, pick({1, 2, 7, 100000}), in_prompt});
      }
    }
  }

  // Of one token, of some, or of nearly all; now and then shorter than the vocabulary.
  void add_mask(std::vector<uint32_t>& allowed) {
    const auto words = static_cast<size_t>(vocab_size_ + 31) / 32;
    allowed.assign(chance(8) ? (words + 1) / 2 : words, 0);
    const auto allow = [&](TokenId id) {
      const auto word = static_cast<size_t>(id) / 32;
      if (word < allowed.size()) allowed[word] |= 1U << id % 32;
    };
    const int kind = pick({0, 1, 2});
    for (int i = 0; i < (kind == 0 ? 1 : 30); ++i) allow(token());
    if (kind == 2) std::ranges::for_each(allowed, [](uint32_t& word) { word = ~word; });
  }

  std::mt19937 random_;
  int vocab_size_;
};

}  // namespace trtmc
