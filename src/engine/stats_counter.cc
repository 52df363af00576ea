#include "engine/stats_counter.h"

#include <algorithm>
#include <bit>

namespace trtmc {
namespace {

// The first of the sizes 1, 2, 4, … that has room for so many.
size_t batch_size_index(size_t num_sequences) {
  const auto index = static_cast<size_t>(std::bit_width(num_sequences - 1));
  return std::min(index, size_t{EngineStats::kNumBatchSizes - 1});
}

}  // namespace

void StatsCounter::begin_step() {
  const std::lock_guard lock(mutex_);
  step_begin_ = std::chrono::steady_clock::now();
}

void StatsCounter::count_whole_step() { counts_.failed_in_row = 0; }

void StatsCounter::count_failed_step() {
  ++counts_.failed_steps;
  ++counts_.failed_in_row;
  const std::lock_guard lock(mutex_);
  last_failure_ = std::chrono::steady_clock::now();
}

void StatsCounter::count_step(const StepPlan& plan, std::span<const TokenDraws::Draw> draws) {
  ++counts_.steps;
  ++counts_.steps_by_batch_size[batch_size_index(plan.rows.size())];
  counts_.step_sequences += static_cast<int64_t>(plan.rows.size());
  for (const PlanRow& row : plan.rows) {
    counts_.computed_tokens += row.count;
    counts_.proposed_drafts += row.num_drafts;
  }
  for (const TokenDraws::Draw& draw : draws) {
    const Sequence& sequence = *draw.sequence;
    const int generated_before = sequence.size() - sequence.prompt_size;
    counts_.accepted_drafts += draw.num_drawn - 1;
    counts_.generated_tokens += draw.run->num_generated(sequence.id) - generated_before;
    // The other choices of a request take the prompt over from the first.
    if (generated_before > 0 || sequence.leader) continue;
    counts_.prompt_tokens += sequence.prompt_size;
    counts_.cached_tokens += sequence.cached;
  }
}

void StatsCounter::publish(const Scheduler& scheduler) {
  counts_.running_sequences = static_cast<int>(scheduler.running().size());
  counts_.kv_blocks = scheduler.blocks().num_blocks();
  counts_.kv_blocks_cached = scheduler.cache().num_idle();
  counts_.kv_blocks_used =
      counts_.kv_blocks - scheduler.blocks().num_free() - counts_.kv_blocks_cached;
  counts_.block_size = scheduler.options().limits.block_size;
  counts_.preemptions = scheduler.num_preemptions();
  const std::lock_guard lock(mutex_);
  published_ = counts_;
  step_begin_.reset();
}

EngineStats StatsCounter::read() const {
  const SteadyTime now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  EngineStats stats = published_;
  if (step_begin_) stats.step_seconds = seconds_between(*step_begin_, now);
  if (stats.failed_in_row > 0) stats.seconds_since_failure = seconds_between(last_failure_, now);
  return stats;
}

}  // namespace trtmc
