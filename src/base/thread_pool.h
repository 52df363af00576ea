// Fork-join over a fixed set of threads. The caller is thread 0 and works too.
#pragma once

#include <memory>

#include "base/function_ref.h"

namespace trtmc {

class ThreadPool {
 public:
  // `num_threads` >= 1; one means that run() just calls the task.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls task(thread) once on every thread, thread in [0, num_threads()), and returns when all
  // have returned. One run at a time; a task must not throw.
  void run(FunctionRef<void(int)> task);

  // One per physical core that this process may use: its affinity mask and its cgroup's CPU quota.
  static int default_num_threads();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trtmc
