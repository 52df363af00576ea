// One thread that carries the engines' events to those who asked: a task is woken when something
// has come for it and takes it, by turns with the others.
#pragma once

#include <list>
#include <memory>
#include <thread>

namespace trtmc {

class EventPump {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    enum class Progress { kWaits, kHasMore, kDone };
    // Takes some of what has come, not for long: others wait. kHasMore: is called again after them.
    // One that is done dies, and so does one that throws.
    virtual Progress advance() = 0;
    // Nobody wants the rest; advance() is called until it is done.
    virtual void cancel() = 0;
  };
  // Where a task is, or will be. May outlive the task and the pump.
  class Place;

  EventPump();
  ~EventPump();  // Every task that is left dies.
  EventPump(const EventPump&) = delete;

  // A place for a task to come, with all the memory that the pump will need for it: without,
  // std::bad_alloc, and nothing below throws.
  std::shared_ptr<Place> reserve();
  // From now on `task` runs, on the pump's thread alone.
  void add(const std::shared_ptr<Place>& place, std::unique_ptr<Task> task) noexcept;

  int num_tasks() const;

 private:
  struct Queue;

  void run();
  void serve(Place& place, bool cancels);
  void forget(Place& place);

  const std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

class EventPump::Place {
 public:
  explicit Place(std::shared_ptr<Queue> queue);

  // From any thread, at any time. Before the task is there a wake is forgotten, a cancel is not;
  // once it or the pump is gone, both are.
  void wake() noexcept;
  void cancel() noexcept;

 private:
  friend EventPump;
  using Places = std::list<std::shared_ptr<Place>>;

  // Whoever tells a task of its last event may still be doing so when the pump is gone.
  const std::shared_ptr<Queue> queue_;
  // The rest is guarded by the queue's mutex. Places go from list to list as they are, so that it
  // takes no memory.
  Places node_ = Places(1);  // Empty while the pump has it.
  Places::iterator position_ = node_.begin();
  std::unique_ptr<Task> task_;
  bool is_awake_ = false;
  bool is_unwanted_ = false;
};

}  // namespace trtmc
