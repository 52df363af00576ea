// What must hold of the scheduler between any two calls, and of every plan. Checked by tests after
// each call and by debug builds after each step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/scheduler.h"

namespace trtmc {

struct CachedBlock {
  BlockId parent = PrefixCache::kNone;
  std::vector<TokenId> tokens;  // [block_size]
};

// The scheduler's state as values.
struct EngineSnapshot {
  SchedulerOptions options;
  std::vector<Sequence> running, waiting;
  std::vector<int> references;  // [num_blocks]
  std::map<BlockId, CachedBlock> cached;
  std::vector<BlockId> idle;  // The first to go first.
  int num_free = 0;
};

EngineSnapshot take_snapshot(const Scheduler& scheduler);

// The first thing that does not hold, in a sentence; nothing if all is well.
std::optional<std::string> find_violation(const EngineSnapshot& snapshot);

// The same of a plan; `after` is the state right after it was made.
std::optional<std::string> find_violation(const StepPlan& plan, const EngineSnapshot& after);

}  // namespace trtmc
