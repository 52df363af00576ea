// One thread that carries the engines' events to those who asked: a task is woken when something
// has come for it and takes all there is.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace trtmc {

class EventPump {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    // Takes what has come. False once the task is done; one that throws is done too, and dies.
    virtual bool advance() = 0;
    // Nobody wants the rest; advance() is called until it is done.
    virtual void cancel() = 0;
  };
  // Where a task is, or will be. May outlive the task.
  struct Place;

  EventPump();
  ~EventPump();  // Every task that is left dies.
  EventPump(const EventPump&) = delete;

  // A place for a task to come, with all the memory that the pump will need for it: without,
  // std::bad_alloc, and nothing below throws.
  std::shared_ptr<Place> reserve();
  // From now on `task` runs, on the pump's thread alone.
  void add(const std::shared_ptr<Place>& place, std::unique_ptr<Task> task) noexcept;

  // From any thread, as long as the pump lives. Before the task is there a wake is forgotten, a
  // cancel is not.
  void wake(Place& place) noexcept;
  void cancel(Place& place) noexcept;

  int num_tasks() const;

 private:
  using Places = std::list<std::shared_ptr<Place>>;

  void run();
  void serve(Place& place, bool cancels);
  void forget(Place& place);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  Places asleep_, awake_;  // Every place with a task is in one of them.
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace trtmc
