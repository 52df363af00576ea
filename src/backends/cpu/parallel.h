// Work in units, handed out as threads come free: which thread does a unit never changes its
// result.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/function_ref.h"
#include "base/thread_pool.h"

namespace trtmc::cpu {

// Calls work(unit, thread) for every unit in [0, num_units). One unit runs on the caller without
// waking anybody.
inline void parallel_for(ThreadPool& pool, int64_t num_units,
                         FunctionRef<void(int64_t unit, int thread)> work) {
  if (num_units <= 1 || pool.num_threads() == 1) {
    for (int64_t unit = 0; unit < num_units; ++unit) work(unit, 0);
    return;
  }
  std::atomic<int64_t> next = 0;
  pool.run([&](int thread) {
    for (int64_t unit = next.fetch_add(1, std::memory_order_relaxed); unit < num_units;
         unit = next.fetch_add(1, std::memory_order_relaxed)) {
      work(unit, thread);
    }
  });
}

}  // namespace trtmc::cpu
