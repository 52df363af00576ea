// An operator new that fails when a test says so, in the place of the program's own.
#pragma once

#include <cstdint>

namespace trtmc {

// While one lives, allocations are counted from 0 on, over all threads, and the one with number
// `first` fails; with kAllFrom, those after it too. One at a time.
class FailingMemory {
 public:
  enum class Which { kOne, kAllFrom };

  FailingMemory(int64_t first, Which which);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;

  bool has_failed() const;
};

// While one lives, its thread's allocations are not counted and don't fail.
class SparedThread {
 public:
  SparedThread();
  ~SparedThread();
  SparedThread(const SparedThread&) = delete;
};

}  // namespace trtmc
