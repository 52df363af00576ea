// What the tests of the scheduler share: sequences, and a scheduler of which each call is checked.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/engine_invariants.h"
#include "engine/scheduler.h"

namespace trtmc {

struct RowIs {
  SequenceId sequence;
  int start, count;
};

inline bool operator==(const PlanRow& row, const RowIs& expected) {
  return row.sequence == expected.sequence && row.start == expected.start &&
         row.count == expected.count;
}

inline std::unique_ptr<Sequence> make_sequence(SequenceId id, int prompt_size, int max_length = 60,
                                               Priority priority = Priority::kNormal) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  sequence->priority = priority;
  sequence->prompt_size = prompt_size;
  sequence->max_length = max_length;
  for (int i = 0; i < prompt_size; ++i) sequence->tokens.push_back(static_cast<TokenId>(id));
  return sequence;
}

inline std::unique_ptr<Sequence> make_follower(SequenceId id, SequenceId leader, int prompt_size) {
  auto sequence = make_sequence(leader, prompt_size);
  sequence->id = id;
  sequence->leader = leader;
  return sequence;
}

// A scheduler of which each call is checked; every sampled token is 7.
class CheckedScheduler {
 public:
  explicit CheckedScheduler(const SchedulerOptions& options) : scheduler_(options) {}

  void admit(std::unique_ptr<Sequence> sequence) {
    EXPECT_EQ(scheduler_.admit(std::move(sequence)), Admission::kAdmitted);
    check();
  }
  StepPlan plan() {
    StepPlan plan = scheduler_.plan();
    check();
    EXPECT_EQ(find_violation(plan, take_snapshot(scheduler_)), std::nullopt);
    return plan;
  }
  void commit(const StepPlan& plan) {
    static constexpr TokenId kSampled[] = {7};
    std::vector<Accepted> accepted;
    for (const PlanRow& row : plan.rows) {
      accepted.push_back(
          {row.samples ? std::span<const TokenId>(kSampled) : std::span<const TokenId>()});
    }
    scheduler_.commit(plan, accepted);
    check();
  }
  StepPlan step() {
    StepPlan plan = this->plan();
    commit(plan);
    return plan;
  }
  Scheduler& operator*() { return scheduler_; }
  Scheduler* operator->() { return &scheduler_; }

 private:
  void check() { EXPECT_EQ(find_violation(take_snapshot(scheduler_)), std::nullopt); }

  Scheduler scheduler_;
};

inline SchedulerOptions options_of(int num_blocks, int block_size, int tokens, int sequences = 8) {
  return {.limits = {.num_blocks = num_blocks,
                     .block_size = block_size,
                     .max_tokens_per_step = tokens,
                     .max_sequences_per_step = sequences}};
}

}  // namespace trtmc
