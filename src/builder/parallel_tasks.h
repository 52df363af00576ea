// Independent tasks spread over a thread pool, with progress and failure brought back to the
// caller. Private to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/thread_pool.h"
#include "builder/builder.h"

namespace trtmc {

// Tells that so many further bytes of a task are done. Leaves by an exception when another task has
// failed, so that all stop soon.
using Advance = FunctionRef<void(uint64_t bytes)>;

struct ParallelTask {
  uint64_t bytes;  // What it advances by in all.
  std::function<void(Advance)> run;
};

// Runs every task once, the largest first so that no thread is left alone with one at the end.
// `progress` is called on this thread only. The first exception of a task or of `progress` comes
// out here, once no task runs any more.
void run_tasks(std::vector<ParallelTask> tasks, ThreadPool& pool, const BuildProgress& progress);

}  // namespace trtmc
