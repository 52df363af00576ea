// Events on their way from the engine's thread to a request's reader.
#pragma once

#include <vector>

#include "engine/generation.h"

namespace trtmc {

// First in, first out. Room that has been made is used again, so that a reader who keeps up costs
// no allocations.
class EventQueue {
 public:
  // With room for `num_events`.
  explicit EventQueue(int num_events);

  bool empty() const { return size_ == 0; }
  // Afterwards there is room for `num_more` more, and those need no memory. Without memory it
  // throws, and nothing has changed.
  void push(TokenEvent&& event, int num_more);
  TokenEvent pop();

 private:
  size_t wrapped(size_t index) const { return index & (events_.size() - 1); }

  std::vector<TokenEvent> events_;  // A ring; a power of two.
  size_t first_ = 0, size_ = 0;
};

}  // namespace trtmc
