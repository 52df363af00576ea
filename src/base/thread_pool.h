// Fork-join over a fixed set of threads. The caller is thread 0 and works too.
//
// The threads keep to one logical core of each physical one, but to no particular one: when another
// process takes a core, the system moves the thread it held up to whichever comes free.
#pragma once

#include <cstdint>
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

  // From the next run on the first `count` threads alone take part, count in [1, num_threads()];
  // at first all do. The others sleep and are not woken. Between runs only.
  void use(int count);

  // Calls task(thread) once on every thread that takes part, thread from 0 on, and returns when all
  // have returned. One run at a time; a task must not throw.
  void run(FunctionRef<void(int thread)> task);

  // Calls work(unit, thread) for every unit in [0, num_units), handed out as threads come free, so
  // that no unit's result may depend on its thread. A thread that the system has not let run by the
  // time that no unit is left is not waited for. A single unit runs on the caller and wakes nobody.
  void share(int64_t num_units, FunctionRef<void(int64_t unit, int thread)> work);

  // num_threads_for() what this process may use: its affinity mask and its cgroup's CPU quota.
  static int default_num_threads();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trtmc
