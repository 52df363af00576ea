// Random walks over everything that can happen to a scheduler, with an executor whose answers show
// any mistake in the bookkeeping.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "engine/engine_invariants.h"
#include "engine/scheduler.h"
#include "engine/step_arrays.h"
#include "tests/support/fake_executor.h"

namespace trtmc {
namespace {

class Walk {
 public:
  explicit Walk(unsigned seed)
      : random_(seed),
        options_{.limits = {.num_blocks = pick(3, 24),
                            .block_size = pick(1, 5),
                            .max_tokens_per_step = pick(1, 24),
                            .max_sequences_per_step = pick(1, 6)},
                 .max_waiting = 12,
                 .max_scored_row = pick(1, 8),
                 .max_tokens_with_drafts = pick(1, 24),
                 .max_steps_passed_over = pick(0, 12),
                 .keeps_blocks = pick(0, 3) > 0},
        scheduler_(options_),
        executor_(kVocabulary, options_.limits) {}

  void run(int calls) {
    for (int i = 0; i < calls && !testing::Test::HasFailure(); ++i) {
      const int what = pick(0, 9);
      if (what < 3) admit_group();
      if (what == 3) finish_one();
      if (what > 3) step();
    }
    for (int i = 0; !scheduler_.empty() && !testing::Test::HasFailure(); ++i) {
      ASSERT_LT(i, 5000) << "the walk does not end";
      step();
    }
    EXPECT_EQ(scheduler_.blocks().num_free() + scheduler_.cache().num_idle(),
              options_.limits.num_blocks)
        << "blocks leak";
  }

  // What has happened.
  struct Counts {
    int finished = 0, preempted = 0, drafts_right = 0, copies = 0, cached = 0, failed = 0;
    int passed = 0, discarded = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  static constexpr int kVocabulary = 5;

  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

  void check() { ASSERT_EQ(find_violation(take_snapshot(scheduler_)), std::nullopt); }

  static TokenId after(std::span<const TokenId> ids) {
    const auto logits = hashed_logits(ids, kVocabulary);
    return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
  }

  void admit_group() {
    // Many begin alike.
    std::vector<TokenId> prompt(static_cast<size_t>(pick(1, 20)), pick(0, 1));
    for (int i = pick(0, 1) * pick(1, 8); i > 0; --i) {
      prompt[static_cast<size_t>(pick(0, static_cast<int>(prompt.size()) - 1))] =
          pick(0, kVocabulary - 1);
    }
    const auto priority = static_cast<Priority>(pick(0, 2));
    const SequenceId leader = next_id_;
    for (int n = pick(0, 3) == 0 ? pick(2, 4) : 1; n > 0; --n) {
      auto sequence = std::make_unique<Sequence>();
      sequence->id = next_id_++;
      sequence->priority = priority;
      sequence->tokens = prompt;
      sequence->prompt_size = static_cast<int>(prompt.size());
      sequence->max_length = sequence->prompt_size + pick(1, 12);
      if (sequence->id != leader) sequence->leader = leader;
      if (pick(0, 5) == 0) sequence->logits_from = 0;
      scheduler_.admit(std::move(sequence));
      check();
    }
  }

  void finish_one() {
    for (const auto* sequences : {&scheduler_.running(), &scheduler_.waiting()}) {
      if (sequences->empty() || pick(0, 1) == 0) continue;
      scheduler_.finish(
          (*sequences)[static_cast<size_t>(pick(0, static_cast<int>(sequences->size()) - 1))]->id);
      check();
      return;
    }
  }

  // Some guesses right, some wrong.
  void propose_drafts() {
    for (const auto& sequence : scheduler_.running()) {
      if (pick(0, 2) != 0) continue;
      std::vector<TokenId> ids = sequence->tokens, draft;
      for (int i = pick(1, 5); i > 0; --i) {
        draft.push_back(pick(0, 3) == 0 ? pick(0, kVocabulary - 1) : after(ids));
        ids.push_back(draft.back());
      }
      scheduler_.propose(sequence->id, draft);
    }
  }

  void step() {
    propose_drafts();
    const auto generating = ids_of_generating();
    const int64_t preemptions_before = scheduler_.num_preemptions();
    const size_t running_before = scheduler_.running().size();
    const auto waiting = ids_of_waiting();
    ++num_plans_;
    const StepPlan& plan = scheduler_.plan();
    check();
    ASSERT_EQ(find_violation(plan, take_snapshot(scheduler_)), std::nullopt);
    check_nobody_is_held_up(plan, generating, scheduler_.num_preemptions() > preemptions_before);
    check_nobody_is_passed_over_for_long(waiting);
    if (scheduler_.running().size() < running_before) ++counts_.preempted;
    if (plan.rows.empty()) return;
    const auto accepted = compute(plan);
    if (pick(0, 20) == 0) return fail(plan);
    if (pick(0, 7) == 0) finish_one();  // Cancelled while the step ran.
    if (pick(0, 12) == 0) discard_one(plan);
    scheduler_.commit(plan, accepted);
    check();
    std::vector<SequenceId> done;
    for (const auto& sequence : scheduler_.running()) {
      if (sequence->size() == sequence->max_length) done.push_back(sequence->id);
    }
    for (const SequenceId id : done) {
      counts_.cached += scheduler_.find(id)->cached;
      scheduler_.finish(id);
    }
    counts_.finished += static_cast<int>(done.size());
    check();
  }

  std::set<SequenceId> ids_of_generating() const {
    std::set<SequenceId> ids;
    for (const auto& sequence : scheduler_.running()) {
      if (sequence->num_uncomputed() == 1) ids.insert(sequence->id);
    }
    return ids;
  }

  // Whoever generates has a row of every step, unless its blocks were taken. It may have found them
  // again in the prefix cache at once, but not the step's tokens.
  void check_nobody_is_held_up(const StepPlan& plan, const std::set<SequenceId>& generating,
                               bool some_gave_way) const {
    for (const auto& sequence : scheduler_.running()) {
      if (!generating.contains(sequence->id) || sequence->num_uncomputed() != 1) continue;
      if (some_gave_way && sequence->was_preempted) continue;
      EXPECT_EQ(std::ranges::count(plan.rows, sequence->id, &PlanRow::sequence), 1);
    }
  }

  bool waits_for_leader(const Sequence& sequence) const {
    const Sequence* leader = sequence.leader ? scheduler_.find(*sequence.leader) : nullptr;
    return leader && !leader->prompt_computed();
  }

  // Those who wait for blocks alone.
  std::set<SequenceId> ids_of_waiting() const {
    std::set<SequenceId> ids;
    for (const auto& sequence : scheduler_.waiting()) {
      if (!waits_for_leader(*sequence)) ids.insert(sequence->id);
    }
    return ids;
  }

  // Whoever has started is behind nobody who could have and has waited for too long.
  void check_nobody_is_passed_over_for_long(const std::set<SequenceId>& waiting) {
    for (const auto& started : scheduler_.running()) {
      if (!waiting.contains(started->id)) continue;
      for (const auto& passed : scheduler_.waiting()) {
        if (!waiting.contains(passed->id) || started->before(*passed)) continue;
        if (waits_for_leader(*passed)) continue;  // Since its leader gave way.
        EXPECT_FALSE(passed->was_preempted);
        EXPECT_LE(num_plans_ - passed->arrival, options_.max_steps_passed_over);
        ++counts_.passed;
      }
    }
  }

  // As the engine does with a step that fails.
  void fail(const StepPlan& plan) {
    ++counts_.failed;
    for (const PlanRow& row : plan.rows) scheduler_.finish(row.sequence);
    for (const BlockCopy& copy : plan.copies) scheduler_.finish(copy.sequence);
    check();
  }

  // As the engine does with an answer that gets no number.
  void discard_one(const StepPlan& plan) {
    const PlanRow& row =
        plan.rows[static_cast<size_t>(pick(0, static_cast<int>(plan.rows.size()) - 1))];
    scheduler_.discard(row.sequence);
    ++counts_.discarded;
    check();
  }

  std::vector<Accepted> compute(const StepPlan& plan) {
    for (const BlockCopy& copy : plan.copies) executor_.copy_block(copy.from, copy.to);
    counts_.copies += static_cast<int>(plan.copies.size());
    arrays_.clear();
    for (const PlanRow& row : plan.rows) {
      const Sequence& sequence = *scheduler_.find(row.sequence);
      arrays_.add(
          std::span(sequence.tokens)
              .subspan(static_cast<size_t>(row.start), static_cast<size_t>(row.num_known())),
          std::span(sequence.draft).first(static_cast<size_t>(row.num_drafts)), row.start,
          sequence.blocks, row.logits_from);
    }
    executor_.submit(arrays_.batch());
    const Logits& logits = executor_.wait();
    std::vector<Accepted> accepted(plan.rows.size());
    sampled_.assign(plan.rows.size(), {});
    int end = 0;
    for (size_t i = 0; i < plan.rows.size(); ++i) {
      const PlanRow& row = plan.rows[i];
      end += row.num_logits();
      if (row.samples) sampled_[i] = sample(row, logits, end - row.num_drafts - 1);
      accepted[i].tokens = sampled_[i];
    }
    return accepted;
  }

  // Takes drafts as long as the logits agree, and checks each against the ids themselves.
  std::vector<TokenId> sample(const PlanRow& row, const Logits& logits, int logits_row) {
    const std::vector<TokenId>& drafts = scheduler_.find(row.sequence)->draft;
    std::vector<TokenId> ids = scheduler_.find(row.sequence)->tokens, accepted;
    for (int draft = 0;; ++draft, ++logits_row) {
      std::vector<float> values(kVocabulary);
      logits.copy_row(logits_row, values);
      const auto token = static_cast<TokenId>(std::ranges::max_element(values) - values.begin());
      EXPECT_EQ(token, after(ids));
      ids.push_back(token);
      accepted.push_back(token);
      if (draft == row.num_drafts || drafts[static_cast<size_t>(draft)] != token) return accepted;
      ++counts_.drafts_right;
    }
  }

  std::mt19937 random_;
  SchedulerOptions options_;
  Scheduler scheduler_;
  FakeExecutor executor_;
  StepArrays arrays_;
  std::vector<std::vector<TokenId>> sampled_;  // [rows]
  SequenceId next_id_ = 1;
  int64_t num_plans_ = 0;
  Counts counts_;
};

// TRTMC_WALKS sets another number.
int num_walks() {
  const char* given = std::getenv("TRTMC_WALKS");
  return given ? std::atoi(given) : 300;
}

TEST(SchedulerSimulation, RandomWalksHoldTheInvariantsAndLeakNothing) {
  Walk::Counts sum;
  const int walks = num_walks();
  for (int seed = 0; seed < walks; ++seed) {
    SCOPED_TRACE(seed);
    Walk walk(static_cast<unsigned>(seed));
    walk.run(60);
    const Walk::Counts& counts = walk.counts();
    sum.finished += counts.finished, sum.preempted += counts.preempted;
    sum.drafts_right += counts.drafts_right, sum.copies += counts.copies;
    sum.cached += counts.cached, sum.failed += counts.failed;
    sum.passed += counts.passed, sum.discarded += counts.discarded;
    ASSERT_FALSE(HasFailure());
  }
  // The walks do go where it is interesting.
  EXPECT_GT(sum.finished, 3 * walks);
  EXPECT_GT(sum.preempted, walks / 4);
  EXPECT_GT(sum.drafts_right, walks / 4);
  EXPECT_GT(sum.copies, walks / 8);
  EXPECT_GT(sum.cached, walks);
  EXPECT_GT(sum.failed, walks / 8);
  EXPECT_GT(sum.passed, walks / 8);
  EXPECT_GT(sum.discarded, walks / 8);
}

}  // namespace
}  // namespace trtmc
