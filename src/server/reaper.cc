#include "server/reaper.h"

#include <system_error>

#include "base/error.h"

namespace trtmc {

Reaper::Reaper() try : thread_([queue = queue_.get()] { queue->run(); }) {
} catch (const std::system_error&) {
  throw Error(ErrorCode::kExhausted, "the system refused to start a thread");
}

Reaper::~Reaper() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->is_over = true;
    queue_->changed.notify_all();
  }
  thread_.join();
}

void Reaper::await_idle() {
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait(lock, [&] { return queue_->is_idle; });
}

void Reaper::Queue::take(Objects& node) {
  {
    const std::lock_guard lock(mutex);
    if (!is_over) {
      dying.splice(dying.end(), node);
      is_idle = false;
    }
    changed.notify_all();
  }
  node.clear();  // Nobody is there any more.
}

void Reaper::Queue::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return is_over || !dying.empty(); });
    if (dying.empty()) return;
    Objects next;
    next.splice(next.end(), dying, dying.begin());
    lock.unlock();
    next.clear();
    lock.lock();
    is_idle = dying.empty();
    changed.notify_all();
  }
}

}  // namespace trtmc
