#include "engine/event_queue.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace trtmc {
namespace {

constexpr int kFirstRoom = 8;

}  // namespace

EventQueue::EventQueue(int num_events)
    : events_(std::bit_ceil(static_cast<size_t>(std::max(num_events, kFirstRoom)))) {}

void EventQueue::push(TokenEvent&& event, int num_more) {
  if (size_ + 1 + static_cast<size_t>(num_more) > events_.size()) {
    std::vector<TokenEvent> wider(2 * events_.size());
    for (size_t i = 0; i < size_; ++i) wider[i] = std::move(events_[wrapped(first_ + i)]);
    events_ = std::move(wider);
    first_ = 0;
  }
  events_[wrapped(first_ + size_++)] = std::move(event);
}

TokenEvent EventQueue::pop() {
  --size_;
  const size_t index = std::exchange(first_, wrapped(first_ + 1));
  return std::move(events_[index]);
}

}  // namespace trtmc
