#include "engine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/engine_invariants.h"
#include "engine/step_arrays.h"
#include "tests/support/fake_executor.h"

namespace trtmc {
namespace {

using testing::ElementsAre;

struct RowIs {
  SequenceId sequence;
  int start, count;
};

bool operator==(const PlanRow& row, const RowIs& expected) {
  return row.sequence == expected.sequence && row.start == expected.start &&
         row.count == expected.count;
}

std::unique_ptr<Sequence> make_sequence(SequenceId id, int prompt_size, int max_length = 60,
                                        Priority priority = Priority::kNormal) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  sequence->priority = priority;
  sequence->prompt_size = prompt_size;
  sequence->max_length = max_length;
  for (int i = 0; i < prompt_size; ++i) sequence->tokens.push_back(static_cast<TokenId>(id));
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
    std::vector<Accepted> accepted;
    for (const PlanRow& row : plan.rows) {
      accepted.emplace_back();
      if (row.samples) accepted.back().tokens = {7};
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

SchedulerOptions options_of(int num_blocks, int block_size, int tokens, int sequences = 8) {
  return {.limits = {.num_blocks = num_blocks,
                     .block_size = block_size,
                     .max_tokens_per_step = tokens,
                     .max_sequences_per_step = sequences}};
}

TEST(Scheduler, ReadsALongPromptInChunksThenOneTokenAStep) {
  CheckedScheduler scheduler(options_of(100, 4, 8));
  scheduler.admit(make_sequence(1, 20, 23));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 0, 8}));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 8, 8}));
  const StepPlan last = scheduler.step();
  EXPECT_THAT(last.rows, ElementsAre(RowIs{1, 16, 4}));
  EXPECT_TRUE(last.rows[0].samples);
  EXPECT_EQ(last.rows[0].num_logits(), 1);
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 20, 1}));
}

TEST(Scheduler, MixesGeneratingWithPromptsUnderOneBudget) {
  CheckedScheduler scheduler(options_of(100, 4, 8));
  scheduler.admit(make_sequence(1, 3));
  scheduler.step();
  scheduler.admit(make_sequence(2, 10));
  scheduler.admit(make_sequence(3, 2));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 3, 1}, RowIs{2, 0, 7}));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 4, 1}, RowIs{2, 7, 3}, RowIs{3, 0, 2}));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 5, 1}, RowIs{2, 10, 1}, RowIs{3, 2, 1}));
}

TEST(Scheduler, ServesByPriorityThenByArrival) {
  CheckedScheduler scheduler(options_of(100, 4, 5));
  scheduler.admit(make_sequence(1, 4, 9, Priority::kLow));
  scheduler.admit(make_sequence(2, 4, 9, Priority::kNormal));
  scheduler.admit(make_sequence(3, 4, 9, Priority::kHigh));
  EXPECT_THAT(scheduler.plan().rows, ElementsAre(RowIs{3, 0, 4}, RowIs{2, 0, 1}));
}

TEST(Scheduler, RefusesWhatCanNeverFitAndWhatIsTooMany) {
  SchedulerOptions options = options_of(4, 4, 8);
  options.max_waiting = 1;
  Scheduler scheduler(options);
  EXPECT_EQ(scheduler.admit(make_sequence(1, 5, 18)), Admission::kTooLong);  // 17 computed of 16.
  EXPECT_EQ(scheduler.admit(make_sequence(2, 5, 5)), Admission::kTooLong);   // No room to answer.
  EXPECT_EQ(scheduler.admit(make_sequence(3, 5, 17)), Admission::kAdmitted);
  EXPECT_EQ(scheduler.admit(make_sequence(4, 5, 17)), Admission::kQueueFull);
}

TEST(Scheduler, TheYoungestGivesWayWhenBlocksRunOut) {
  CheckedScheduler scheduler(options_of(4, 2, 16));
  scheduler.admit(make_sequence(1, 4, 9));
  scheduler.admit(make_sequence(2, 4, 9));
  scheduler.step();  // Both prompts, two blocks each.
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 4, 1}));  // Needs a third: 2 gives way.
  EXPECT_EQ(scheduler->waiting().size(), 1u);
  for (int i = 5; i < 8; ++i) {
    EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, i, 1}));
  }
  scheduler->finish(1);
  // What it had generated is computed again with the prompt.
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{2, 0, 5}));
}

TEST(Scheduler, AHigherPriorityTakesBlocksFromALower) {
  CheckedScheduler scheduler(options_of(4, 2, 16));
  scheduler.admit(make_sequence(1, 6, 8, Priority::kNormal));
  scheduler.step();
  scheduler.admit(make_sequence(2, 4, 8, Priority::kNormal));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 6, 1}));  // An equal has to wait.
  scheduler.admit(make_sequence(3, 4, 8, Priority::kHigh));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{3, 0, 4}));
}

TEST(Scheduler, NoMoreSequencesRunThanAStepHolds) {
  CheckedScheduler scheduler(options_of(100, 4, 100, 2));
  for (SequenceId id = 1; id <= 3; ++id) scheduler.admit(make_sequence(id, 2));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 0, 2}, RowIs{2, 0, 2}));
  scheduler->finish(1);
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{2, 2, 1}, RowIs{3, 0, 2}));
}

TEST(Scheduler, FollowersTakeOverTheLeadersPrompt) {
  CheckedScheduler scheduler(options_of(100, 4, 16));
  for (SequenceId id = 1; id <= 3; ++id) {
    auto sequence = make_sequence(id, 11);
    if (id > 1) sequence->leader = 1;
    scheduler.admit(std::move(sequence));
  }
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 0, 11}));
  const StepPlan plan = scheduler.plan();
  EXPECT_THAT(plan.rows, ElementsAre(RowIs{1, 11, 1}, RowIs{2, 10, 1}, RowIs{3, 10, 1}));
  ASSERT_EQ(plan.copies.size(), 2u);  // Positions 8 and 9 lie in the third block.
  const auto& leader = scheduler->find(1)->blocks;
  for (const SequenceId id : {2u, 3u}) {
    const auto& blocks = scheduler->find(id)->blocks;
    EXPECT_EQ(blocks[0], leader[0]);
    EXPECT_EQ(blocks[1], leader[1]);
    EXPECT_EQ(plan.copies[id - 2].from, leader[2]);
    EXPECT_EQ(plan.copies[id - 2].to, blocks[2]);
  }
  EXPECT_EQ(scheduler->blocks().references(leader[0]), 3);
}

TEST(Scheduler, NothingIsCopiedWhenTheLastTokenBeginsABlock) {
  CheckedScheduler scheduler(options_of(100, 4, 16));
  scheduler.admit(make_sequence(1, 9));
  auto follower = make_sequence(2, 9);
  follower->leader = 1;
  scheduler.admit(std::move(follower));
  scheduler.step();
  const StepPlan plan = scheduler.plan();
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_THAT(plan.rows, ElementsAre(RowIs{1, 9, 1}, RowIs{2, 8, 1}));
}

TEST(Scheduler, AFollowerWhoseLeaderIsGoneComputesThePromptItself) {
  CheckedScheduler scheduler(options_of(100, 4, 8));
  scheduler.admit(make_sequence(1, 12));
  auto follower = make_sequence(2, 12);
  follower->leader = 1;
  scheduler.admit(std::move(follower));
  scheduler.step();
  scheduler->finish(1);
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{2, 0, 8}));
}

TEST(Scheduler, AcceptedDraftsCountAndWrongOnesAreRolledBack) {
  CheckedScheduler scheduler(options_of(100, 2, 16));
  scheduler.admit(make_sequence(1, 3));
  scheduler.step();  // [1 1 1] 7
  scheduler->propose(1, {5, 6, 8, 9});
  const StepPlan plan = scheduler.plan();
  EXPECT_THAT(plan.rows, ElementsAre(RowIs{1, 3, 5}));
  EXPECT_EQ(plan.rows[0].num_logits(), 5);
  EXPECT_EQ(scheduler->find(1)->blocks.size(), 4u);
  scheduler->commit(plan, std::vector<Accepted>{{{5, 6, 2}}});
  EXPECT_EQ(scheduler->find(1)->computed, 6);
  EXPECT_EQ(scheduler->find(1)->blocks.size(), 3u);
  EXPECT_THAT(scheduler->find(1)->tokens, ElementsAre(1, 1, 1, 7, 5, 6, 2));
  EXPECT_THAT(scheduler.plan().rows, ElementsAre(RowIs{1, 6, 1}));
}

TEST(Scheduler, DraftsEndBeforeTheLongestLength) {
  CheckedScheduler scheduler(options_of(100, 2, 16));
  scheduler.admit(make_sequence(1, 3, 7));
  scheduler.step();  // 4 of 7: two drafts and the token after them.
  scheduler->propose(1, {5, 5, 5, 5});
  EXPECT_THAT(scheduler.plan().rows, ElementsAre(RowIs{1, 3, 3}));
}

TEST(Scheduler, DraftsNeverTakeBlocksFromOthers) {
  CheckedScheduler scheduler(options_of(4, 2, 16));
  scheduler.admit(make_sequence(1, 3, 8));
  scheduler.admit(make_sequence(2, 3, 8));
  scheduler.step();
  scheduler->propose(1, {5, 5, 5, 5});
  EXPECT_THAT(scheduler.plan().rows, ElementsAre(RowIs{1, 3, 1}, RowIs{2, 3, 1}));
}

TEST(Scheduler, LogitsOfThePromptAreAskedForOnce) {
  SchedulerOptions options = options_of(3, 4, 100);
  options.max_scored_row = 4;
  CheckedScheduler scheduler(options);
  auto sequence = make_sequence(2, 6, 9);
  sequence->logits_from = 0;
  scheduler.admit(std::move(sequence));
  StepPlan plan = scheduler.step();
  EXPECT_THAT(plan.rows, ElementsAre(RowIs{2, 0, 4}));
  EXPECT_EQ(plan.rows[0].num_logits(), 4);
  scheduler.admit(make_sequence(1, 8, 10, Priority::kHigh));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 0, 8}));  // 2 is preempted.
  scheduler->finish(1);
  plan = scheduler.step();
  EXPECT_THAT(plan.rows, ElementsAre(RowIs{2, 0, 4}));
  EXPECT_EQ(plan.rows[0].num_logits(), 0);
}

TEST(EngineInvariants, TheValidatorSeesEachKindOfDamage) {
  CheckedScheduler scheduler(options_of(8, 2, 16));
  scheduler.admit(make_sequence(1, 5, 9));
  scheduler.admit(make_sequence(2, 5, 9));
  scheduler.step();
  const EngineSnapshot sound = take_snapshot(*scheduler);
  ASSERT_EQ(find_violation(sound), std::nullopt);
  const auto damaged = [&](auto&& damage) {
    EngineSnapshot snapshot = sound;
    damage(snapshot);
    return find_violation(snapshot).has_value();
  };
  EXPECT_TRUE(damaged([](auto& s) { std::swap(s.running[0], s.running[1]); }));
  EXPECT_TRUE(damaged([](auto& s) { s.running[1].id = 1; }));
  EXPECT_TRUE(damaged([](auto& s) { s.running[0].blocks[2] = s.running[1].blocks[2]; }));
  EXPECT_TRUE(damaged([](auto& s) {
    s.running[0].blocks[2] = s.running[1].blocks[2];
    s.references = take_snapshot(Scheduler(s.options)).references;
    for (const auto& q : s.running) {
      for (const BlockId block : q.blocks) ++s.references[static_cast<size_t>(block)];
    }
    s.num_free = static_cast<int>(std::ranges::count(s.references, 0));
  }));
  EXPECT_TRUE(damaged([](auto& s) { s.running[0].blocks.pop_back(); }));
  EXPECT_TRUE(damaged([](auto& s) { s.num_free += 1; }));
  EXPECT_TRUE(damaged([](auto& s) { s.running[0].computed = 6; }));
  EXPECT_TRUE(damaged([](auto& s) { s.running[0].tokens.resize(10); }));
  EXPECT_TRUE(damaged([](auto& s) { s.waiting.push_back(s.running[0]); }));
}

TEST(EngineInvariants, TheValidatorSeesEachKindOfWrongPlan) {
  CheckedScheduler scheduler(options_of(8, 2, 16));
  scheduler.admit(make_sequence(1, 5, 9));
  const StepPlan sound = scheduler.plan();
  const EngineSnapshot after = take_snapshot(*scheduler);
  ASSERT_EQ(find_violation(sound, after), std::nullopt);
  const auto wrong = [&](auto&& damage) {
    StepPlan plan = sound;
    damage(plan);
    return find_violation(plan, after).has_value();
  };
  EXPECT_TRUE(wrong([](auto& p) { p.rows.clear(); }));
  EXPECT_TRUE(wrong([](auto& p) { p.rows.push_back(p.rows[0]); }));
  EXPECT_TRUE(wrong([](auto& p) { p.rows[0].sequence = 9; }));
  EXPECT_TRUE(wrong([](auto& p) { p.rows[0].start = 1; }));
  EXPECT_TRUE(wrong([](auto& p) { p.rows[0].count = 6; }));
  EXPECT_TRUE(wrong([](auto& p) { p.rows[0].samples = false; }));
  EXPECT_TRUE(wrong([](auto& p) { p.rows[0].logits_from = 5; }));
  EXPECT_TRUE(wrong([](auto& p) { p.copies.push_back({1, 0, 7}); }));
}

// Random walks over everything that can happen to a scheduler, with an executor whose answers show
// any mistake in the bookkeeping.
class Walk {
 public:
  explicit Walk(unsigned seed)
      : random_(seed),
        options_{.limits = {.num_blocks = pick(3, 24),
                            .block_size = pick(1, 5),
                            .max_tokens_per_step = pick(1, 24),
                            .max_sequences_per_step = pick(1, 6)},
                 .max_waiting = 12,
                 .max_scored_row = pick(1, 8)},
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
    EXPECT_EQ(scheduler_.blocks().num_free(), options_.limits.num_blocks) << "blocks leak";
  }

  int finished = 0, preempted = 0, drafts_right = 0, copies = 0;

 private:
  static constexpr int kVocabulary = 5;

  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }

  void check() { ASSERT_EQ(find_violation(take_snapshot(scheduler_)), std::nullopt); }

  static TokenId after(std::span<const TokenId> ids) {
    const auto logits = hashed_logits(ids, kVocabulary);
    return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
  }

  void admit_group() {
    std::vector<TokenId> prompt(static_cast<size_t>(pick(1, 20)));
    for (TokenId& token : prompt) token = pick(0, kVocabulary - 1);
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
    const size_t running_before = scheduler_.running().size();
    const StepPlan plan = scheduler_.plan();
    check();
    ASSERT_EQ(find_violation(plan, take_snapshot(scheduler_)), std::nullopt);
    if (scheduler_.running().size() < running_before) ++preempted;
    if (plan.rows.empty()) return;
    const auto accepted = compute(plan);
    if (pick(0, 7) == 0) finish_one();  // Cancelled while the step ran.
    scheduler_.commit(plan, accepted);
    check();
    std::vector<SequenceId> done;
    for (const auto& sequence : scheduler_.running()) {
      if (sequence->size() == sequence->max_length) done.push_back(sequence->id);
    }
    for (const SequenceId id : done) scheduler_.finish(id);
    finished += static_cast<int>(done.size());
    check();
  }

  std::vector<Accepted> compute(const StepPlan& plan) {
    for (const BlockCopy& copy : plan.copies) executor_.copy_block(copy.from, copy.to);
    copies += static_cast<int>(plan.copies.size());
    arrays_.clear();
    for (const PlanRow& row : plan.rows) {
      const Sequence& sequence = *scheduler_.find(row.sequence);
      std::vector<TokenId> tokens = known(row, sequence);
      tokens.insert(tokens.end(), row.draft.begin(), row.draft.end());
      arrays_.add(tokens, row.start, sequence.blocks, row.logits_from);
    }
    executor_.submit(arrays_.batch());
    const Logits& logits = executor_.wait();
    std::vector<Accepted> accepted(plan.rows.size());
    int first = 0;
    for (size_t i = 0; i < plan.rows.size(); ++i) {
      const PlanRow& row = plan.rows[i];
      if (row.samples) accepted[i].tokens = sample(row, logits, first + row.num_logits());
      first += row.num_logits();
    }
    return accepted;
  }

  static std::vector<TokenId> known(const PlanRow& row, const Sequence& sequence) {
    const auto begin = sequence.tokens.begin() + row.start;
    return {begin, begin + row.count - static_cast<int>(row.draft.size())};
  }

  // Takes drafts as long as the logits agree, and checks each against the ids themselves.
  std::vector<TokenId> sample(const PlanRow& row, const Logits& logits, int end) {
    std::vector<TokenId> ids = scheduler_.find(row.sequence)->tokens, accepted;
    int logits_row = end - static_cast<int>(row.draft.size()) - 1;
    for (size_t draft = 0;; ++draft, ++logits_row) {
      std::vector<float> values(kVocabulary);
      logits.copy_row(logits_row, values);
      const auto token = static_cast<TokenId>(std::ranges::max_element(values) - values.begin());
      EXPECT_EQ(token, after(ids));
      ids.push_back(token);
      accepted.push_back(token);
      if (draft == row.draft.size() || row.draft[draft] != token) return accepted;
      ++drafts_right;
    }
  }

  std::mt19937 random_;
  SchedulerOptions options_;
  Scheduler scheduler_;
  FakeExecutor executor_;
  StepArrays arrays_;
  SequenceId next_id_ = 1;
};

TEST(SchedulerSimulation, RandomWalksHoldTheInvariantsAndLeakNothing) {
  int finished = 0, preempted = 0, drafts_right = 0, copies = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Walk walk(seed);
    walk.run(60);
    finished += walk.finished, preempted += walk.preempted;
    drafts_right += walk.drafts_right, copies += walk.copies;
    ASSERT_FALSE(HasFailure());
  }
  // The walks do go where it is interesting.
  EXPECT_GT(finished, 1500);
  EXPECT_GT(preempted, 150);
  EXPECT_GT(drafts_right, 150);
  EXPECT_GT(copies, 75);
}

}  // namespace
}  // namespace trtmc
