// The log's lines on a thread of their own, for programs that must go on when whoever reads them
// doesn't: a pipe that is full, a disk that hangs.
#pragma once

#include <memory>

#include "base/log.h"

namespace trtmc {

class BackgroundLog {
 public:
  // From now on lines wait for a thread that hands them to `sink`, up to 1 MiB of them. Those
  // beyond are lost, and a line says how many.
  explicit BackgroundLog(LogSink sink);
  // Lines go straight to `sink` again. Those that wait are handed over first, for a second at most;
  // a sink that does not return by then is left behind with its thread.
  ~BackgroundLog();
  BackgroundLog(const BackgroundLog&) = delete;

 private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
};

}  // namespace trtmc
