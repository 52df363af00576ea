// Counts what an engine's thread does, for others to read. A step costs two locks that hardly
// anybody else wants, and no allocation.
#pragma once

#include <mutex>
#include <optional>
#include <span>

#include "base/clock.h"
#include "engine/engine_stats.h"
#include "engine/scheduler.h"
#include "engine/token_draws.h"

namespace trtmc {

class StatsCounter {
 public:
  // By the engine's thread, as all but read(): a step starts. It has ended with publish().
  void begin_step();
  // Between the draws and the commit of a plan.
  void count_step(const StepPlan& plan, std::span<const TokenDraws::Draw> draws);
  void count_whole_step();  // It has gone well to its end.
  void count_failed_step();

  // Shows what has been counted, and what the scheduler has now.
  void publish(const Scheduler& scheduler);

  // From any thread: what was published last. queued_requests is not set.
  EngineStats read() const;

 private:
  EngineStats counts_;  // Of the engine's thread.

  mutable std::mutex mutex_;  // Guards what follows.
  std::optional<SteadyTime> step_begin_;
  SteadyTime last_failure_;
  EngineStats published_;
};

}  // namespace trtmc
