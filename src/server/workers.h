// A few threads for what takes longer than the server's own thread may: rendering, tokenizing.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace trtmc {

class Workers {
 public:
  // Throws kExhausted if the system refuses the threads.
  Workers(int num_threads, int max_waiting);
  ~Workers();  // What waits is forgotten; what runs ends first.
  Workers(const Workers&) = delete;

  // `work` must not throw. False if too much waits already.
  [[nodiscard]] bool post(std::function<void()> work);

 private:
  void run();

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace trtmc
