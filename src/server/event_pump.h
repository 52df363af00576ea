// One thread that carries the engines' events to those who asked: a task is woken when something
// has come for it and takes all there is.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

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
  using TaskId = uint64_t;

  EventPump();
  ~EventPump();  // Every task that is left dies.
  EventPump(const EventPump&) = delete;

  // An id for a task to come. It may be woken before it is there, but not cancelled.
  TaskId reserve();
  // From now on `task` runs, on the pump's thread alone.
  void add(TaskId id, std::unique_ptr<Task> task);

  // From any thread. Once as many have been awake at a time as ever are, this allocates nothing.
  void wake(TaskId id);
  void cancel(TaskId id);

  int num_tasks() const;

 private:
  struct Wish {
    TaskId id;
    bool cancels;
  };

  void run();
  void keep(TaskId id, std::unique_ptr<Task> task);
  void serve(const Wish& wish);
  void count_end();
  void ask(Wish wish);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  TaskId next_id_ = 1;
  std::vector<Wish> wishes_;
  std::vector<std::pair<TaskId, std::unique_ptr<Task>>> added_;
  bool stopping_ = false;
  int num_tasks_ = 0;

  std::unordered_map<TaskId, std::unique_ptr<Task>> tasks_;  // Of the thread alone.
  std::thread thread_;
};

}  // namespace trtmc
