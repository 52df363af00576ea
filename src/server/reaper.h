// A thread on which objects die that take long to do so, such as models: whoever lets go of the
// last reference to one goes on at once.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace trtmc {

class Reaper {
 public:
  Reaper();   // Throws kExhausted if the system refuses the thread.
  ~Reaper();  // Waits for what dies. Whoever is let go of later dies where that happens.
  Reaper(const Reaper&) = delete;

  // The same object, which dies here once nobody has what is returned. That takes no memory.
  template <typename T>
  std::shared_ptr<T> in_care(std::shared_ptr<T> object) {
    T* const address = object.get();
    Objects node;
    node.push_back(std::move(object));
    return {address, [queue = queue_, node = std::move(node)](T*) mutable { queue->take(node); }};
  }

  // Returns once all have died whom nobody has any more.
  void await_idle();

 private:
  using Objects = std::list<std::shared_ptr<void>>;
  struct Queue {
    void take(Objects& node);
    void run();

    std::mutex mutex;
    std::condition_variable changed;
    Objects dying;
    bool is_idle = true;
    bool is_over = false;
  };

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

}  // namespace trtmc
