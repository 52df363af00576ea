#include "server/event_pump.h"

#include <exception>
#include <new>
#include <utility>

#include "base/log.h"

namespace trtmc {

EventPump::EventPump() : thread_([this] { run(); }) {}

EventPump::~EventPump() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

EventPump::TaskId EventPump::reserve() {
  const std::lock_guard lock(mutex_);
  return next_id_++;
}

void EventPump::add(TaskId id, std::unique_ptr<Task> task) {
  {
    const std::lock_guard lock(mutex_);
    added_.emplace_back(id, std::move(task));
    ++num_tasks_;
  }
  // What came before the task did was for nobody.
  wake(id);
}

void EventPump::wake(TaskId id) { ask({id, false}); }

void EventPump::cancel(TaskId id) { ask({id, true}); }

int EventPump::num_tasks() const {
  const std::lock_guard lock(mutex_);
  return num_tasks_;
}

void EventPump::ask(Wish wish) {
  {
    const std::lock_guard lock(mutex_);
    wishes_.push_back(wish);
    if (wishes_.size() > 1) return;  // The thread has been woken.
  }
  wake_.notify_one();
}

void EventPump::run() {
  std::vector<Wish> wishes;
  std::vector<std::pair<TaskId, std::unique_ptr<Task>>> added;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !wishes_.empty(); });
      if (stopping_) return;
      wishes.swap(wishes_);
      added.swap(added_);
    }
    for (auto& [id, task] : added) keep(id, std::move(task));
    added.clear();
    for (const Wish& wish : wishes) serve(wish);
    wishes.clear();
  }
}

void EventPump::keep(TaskId id, std::unique_ptr<Task> task) {
  try {
    tasks_.emplace(id, std::move(task));
  } catch (const std::bad_alloc&) {
    count_end();  // It dies, which is an answer too.
  }
}

void EventPump::serve(const Wish& wish) {
  const auto found = tasks_.find(wish.id);
  if (found == tasks_.end()) return;  // It is over.
  try {
    if (wish.cancels) found->second->cancel();
    if (found->second->advance()) return;
  } catch (const std::exception& error) {
    log_error("a request was given up: {}", error.what());
  }
  tasks_.erase(found);
  count_end();
}

void EventPump::count_end() {
  const std::lock_guard lock(mutex_);
  --num_tasks_;
}

}  // namespace trtmc
