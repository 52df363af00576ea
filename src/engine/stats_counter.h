// Counts what an engine's thread does, for others to read. A step costs one lock that hardly
// anybody else wants, and no allocation.
#pragma once

#include <mutex>
#include <span>

#include "engine/engine_stats.h"
#include "engine/scheduler.h"
#include "engine/token_draws.h"

namespace trtmc {

class StatsCounter {
 public:
  // By the engine's thread, between the draws and the commit of a plan.
  void count_step(const StepPlan& plan, std::span<const TokenDraws::Draw> draws);
  void count_failed_step() { ++counts_.failed_steps; }

  // Shows what has been counted, and what the scheduler has now.
  void publish(const Scheduler& scheduler);

  // From any thread: what was published last. queued_requests is not set.
  EngineStats read() const;

 private:
  EngineStats counts_;  // Of the engine's thread.

  mutable std::mutex mutex_;
  EngineStats published_;
};

}  // namespace trtmc
