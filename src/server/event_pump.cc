#include "server/event_pump.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace trtmc {

// Places go from list to list as they are, so that it takes no memory. Guarded by the pump's mutex.
struct EventPump::Place {
  Places node = Places(1);  // Empty while the pump has it.
  Places::iterator position = node.begin();
  std::unique_ptr<Task> task;
  bool is_awake = false;
  bool is_unwanted = false;
};

EventPump::EventPump() : thread_([this] { run(); }) {}

EventPump::~EventPump() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  // A task may be the last to hold an engine, which wakes others until it has ended.
  for (const Places* places : {&asleep_, &awake_}) {
    for (const std::shared_ptr<Place>& place : *places) place->task.reset();
  }
}

std::shared_ptr<EventPump::Place> EventPump::reserve() { return std::make_shared<Place>(); }

void EventPump::add(const std::shared_ptr<Place>& place, std::unique_ptr<Task> task) noexcept {
  {
    const std::lock_guard lock(mutex_);
    *place->position = place;
    place->task = std::move(task);
    asleep_.splice(asleep_.end(), place->node);
  }
  // What came before the task did was for nobody.
  wake(*place);
}

void EventPump::wake(Place& place) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || !place.task || std::exchange(place.is_awake, true)) return;
    awake_.splice(awake_.end(), asleep_, place.position);
    if (awake_.size() > 1) return;  // The thread has been woken.
  }
  wake_.notify_one();
}

void EventPump::cancel(Place& place) noexcept {
  {
    const std::lock_guard lock(mutex_);
    place.is_unwanted = true;
  }
  wake(place);
}

int EventPump::num_tasks() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(asleep_.size() + awake_.size());
}

void EventPump::run() {
  for (;;) {
    Place* place = nullptr;
    bool cancels = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !awake_.empty(); });
      if (stopping_) return;
      place = awake_.front().get();
      asleep_.splice(asleep_.end(), awake_, place->position);
      place->is_awake = false;
      cancels = std::exchange(place->is_unwanted, false);
    }
    serve(*place, cancels);
  }
}

void EventPump::serve(Place& place, bool cancels) {
  try {
    if (cancels) place.task->cancel();
    if (place.task->advance()) return;
  } catch (const std::exception& error) {
    log_error("a request was given up: {}", error.what());
  }
  forget(place);
}

// What dies does so without the lock.
void EventPump::forget(Place& place) {
  std::unique_ptr<Task> task;
  {
    const std::lock_guard lock(mutex_);
    task = std::move(place.task);
  }
  task.reset();
  Places node;
  const std::lock_guard lock(mutex_);
  node.splice(node.end(), place.is_awake ? awake_ : asleep_, place.position);
}

}  // namespace trtmc
