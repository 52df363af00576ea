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
  pool.share(num_units, work);
}

}  // namespace trtmc::cpu
