// How often each token of an answer has been said, for the penalties.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "model/sampling.h"

namespace trtmc {

class TokenCounts {
 public:
  void add(TokenId token, bool in_prompt) {
    const auto [place, is_new] = places_.try_emplace(token, counts_.size());
    if (is_new) counts_.push_back({.token = token, .count = 0, .in_prompt = in_prompt});
    ++counts_[place->second].count;
  }

  // Each token once, in the order in which they were first said.
  std::span<const TokenCount> counts() const { return counts_; }

 private:
  std::vector<TokenCount> counts_;
  std::unordered_map<TokenId, size_t> places_;  // Of each token in counts_.
};

}  // namespace trtmc
