// Guesses what follows a sequence's tokens: what followed the last few of them when they stood in
// the prompt or the answer before (prompt lookup decoding, A. Saxena 2023). A step computes the
// guesses with the last token, and keeps as many as are what it would have said anyway: so a guess
// costs time when it is wrong and never changes an answer.
//
// Whether guessing pays is kept as an account in guesses. One that was computed costs 1, one that
// was right brings kGain. No more is guessed at once than the account holds; once it is empty
// nothing is guessed for a while, twice as long each time. All of it follows from the tokens alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"

namespace trtmc {

class PromptLookup {
 public:
  static constexpr int kMostDrafts = 8;
  static constexpr int kMatch = 3;  // Tokens that have to have stood there before.
  static constexpr int kGain = 3;   // A guess is taken to cost a third of a step.
  static constexpr int kMostBalance = 16;
  static constexpr int kFirstBalance = 4;
  static constexpr int kFirstPause = 16;  // In calls of propose().
  static constexpr int kLongestPause = 512;

  // Guesses at what follows `tokens`: all of the sequence, which only grows from call to call.
  // Valid until the next call.
  std::span<const TokenId> propose(std::span<const TokenId> tokens);

  // What became of guesses: how many were computed, and how many of these were right.
  void record(int num_drafted, int num_right);

 private:
  void index(std::span<const TokenId> tokens);
  uint32_t& place_of(std::span<const TokenId> match);

  // By hash of kMatch tokens: where what followed them begins, or 0. Where two share a place the
  // later one has it.
  std::vector<uint32_t> places_;
  size_t num_indexed_ = kMatch;
  std::vector<TokenId> draft_;
  int balance_ = kFirstBalance;
  int pause_ = 0;  // Calls that are left of it.
  int next_pause_ = kFirstPause;
};

}  // namespace trtmc
