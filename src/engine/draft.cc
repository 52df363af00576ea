#include "engine/draft.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace trtmc {
namespace {

constexpr size_t kFirstPlaces = 256;  // A power of two.

}  // namespace

std::span<const TokenId> PromptLookup::propose(std::span<const TokenId> tokens) {
  draft_.clear();
  if (pause_ > 0) {
    --pause_;
    return draft_;
  }
  if (tokens.size() <= kMatch) return draft_;
  index(tokens);
  const auto last = tokens.last(kMatch);
  const uint32_t place = place_of(last);
  if (place == 0 || !std::ranges::equal(tokens.subspan(place - kMatch, kMatch), last)) {
    return draft_;
  }
  // Goes on into the guesses themselves: what repeats with a short period repeats for longer.
  const auto count = static_cast<size_t>(std::min(kMostDrafts, balance_));
  for (size_t i = place; draft_.size() < count; ++i) {
    draft_.push_back(i < tokens.size() ? tokens[i] : draft_[i - tokens.size()]);
  }
  return draft_;
}

void PromptLookup::record(int num_drafted, int num_right) {
  balance_ = std::min(kMostBalance, balance_ + kGain * num_right - num_drafted);
  if (num_right == num_drafted) next_pause_ = kFirstPause;
  if (balance_ > 0) return;
  pause_ = next_pause_;
  next_pause_ = std::min(2 * next_pause_, kLongestPause);
  balance_ = 1;
}

// All that is followed by something. A later place replaces an earlier one.
void PromptLookup::index(std::span<const TokenId> tokens) {
  if (4 * tokens.size() > places_.size()) {
    places_.assign(std::max(kFirstPlaces, std::bit_ceil(8 * tokens.size())), 0);
    num_indexed_ = kMatch;
  }
  for (; num_indexed_ < tokens.size(); ++num_indexed_) {
    place_of(tokens.subspan(num_indexed_ - kMatch, kMatch)) = static_cast<uint32_t>(num_indexed_);
  }
}

uint32_t& PromptLookup::place_of(std::span<const TokenId> match) {
  return places_[hash64(std::as_bytes(match)) & (places_.size() - 1)];
}

}  // namespace trtmc
