#include "server/event_pump.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "base/log.h"

namespace trtmc {

// What the pump and its places share; the mutex guards the rest.
struct EventPump::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  Place::Places asleep, awake;  // Every place with a task is in one of them.
  bool is_over = false;
};

EventPump::Place::Place(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}

void EventPump::Place::wake() noexcept {
  const std::lock_guard lock(queue_->mutex);
  if (queue_->is_over || !task_ || std::exchange(is_awake_, true)) return;
  queue_->awake.splice(queue_->awake.end(), queue_->asleep, position_);
  if (queue_->awake.size() == 1) queue_->changed.notify_one();  // Else the thread has been woken.
}

void EventPump::Place::cancel() noexcept {
  {
    const std::lock_guard lock(queue_->mutex);
    is_unwanted_ = true;
  }
  wake();
}

EventPump::EventPump() : queue_(std::make_shared<Queue>()), thread_([this] { run(); }) {}

EventPump::~EventPump() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->is_over = true;
    queue_->changed.notify_one();
  }
  thread_.join();
  // Nobody else touches a place or a list any more. A task may be the last to hold an engine, which
  // wakes others until it has ended; and a place holds the queue, so the lists must let go of it.
  for (Place::Places* places : {&queue_->asleep, &queue_->awake}) {
    for (const std::shared_ptr<Place>& place : *places) place->task_.reset();
    places->clear();
  }
}

std::shared_ptr<EventPump::Place> EventPump::reserve() { return std::make_shared<Place>(queue_); }

void EventPump::add(const std::shared_ptr<Place>& place, std::unique_ptr<Task> task) noexcept {
  {
    const std::lock_guard lock(queue_->mutex);
    *place->position_ = place;
    place->task_ = std::move(task);
    queue_->asleep.splice(queue_->asleep.end(), place->node_);
  }
  // What came before the task did was for nobody.
  place->wake();
}

int EventPump::num_tasks() const {
  const std::lock_guard lock(queue_->mutex);
  return static_cast<int>(queue_->asleep.size() + queue_->awake.size());
}

void EventPump::run() {
  for (;;) {
    Place* place = nullptr;
    bool cancels = false;
    {
      std::unique_lock lock(queue_->mutex);
      queue_->changed.wait(lock, [&] { return queue_->is_over || !queue_->awake.empty(); });
      if (queue_->is_over) return;
      place = queue_->awake.front().get();
      queue_->asleep.splice(queue_->asleep.end(), queue_->awake, place->position_);
      place->is_awake_ = false;
      cancels = std::exchange(place->is_unwanted_, false);
    }
    serve(*place, cancels);
  }
}

void EventPump::serve(Place& place, bool cancels) {
  try {
    if (cancels) place.task_->cancel();
    switch (place.task_->advance()) {
      case Task::Progress::kWaits:
        return;
      case Task::Progress::kHasMore:
        return place.wake();
      case Task::Progress::kDone:
        break;
    }
  } catch (const std::exception& error) {
    log_error("a request was given up: {}", error.what());
  }
  forget(place);
}

// What dies does so without the lock.
void EventPump::forget(Place& place) {
  std::unique_ptr<Task> task;
  {
    const std::lock_guard lock(queue_->mutex);
    task = std::move(place.task_);
  }
  task.reset();
  Place::Places node;
  const std::lock_guard lock(queue_->mutex);
  node.splice(node.end(), place.is_awake_ ? queue_->awake : queue_->asleep, place.position_);
}

}  // namespace trtmc
