// How often each token has been seen, for the penalties.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "model/sampling.h"

namespace trtmc {

class TokenCounts {
 public:
  explicit TokenCounts(std::span<const TokenId> prompt = {}) {
    for (const TokenId token : prompt) ++count_of(token).in_prompt;
  }

  void add_output(TokenId token) { ++count_of(token).in_output; }

  // Each token once, in the order in which they were first seen.
  std::span<const TokenCount> counts() const { return counts_; }

 private:
  TokenCount& count_of(TokenId token) {
    const auto [place, is_new] = places_.try_emplace(token, counts_.size());
    if (is_new) counts_.push_back({token, 0, 0});
    return counts_[place->second];
  }

  std::vector<TokenCount> counts_;
  std::unordered_map<TokenId, size_t> places_;  // Of each token in counts_.
};

}  // namespace trtmc
