#include "engine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/checked_scheduler.h"

namespace trtmc {
namespace {

using testing::ElementsAre;

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
  // 7 are left: 4 for the first prompt, 2 are all the other has, and 1 more for the first.
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 3, 1}, RowIs{2, 0, 5}, RowIs{3, 0, 2}));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 4, 1}, RowIs{3, 2, 1}, RowIs{2, 5, 5}));
}

TEST(Scheduler, ServesByPriorityThenByArrival) {
  CheckedScheduler scheduler(options_of(100, 4, 5));
  scheduler.admit(make_sequence(1, 4, 9, Priority::kLow));
  scheduler.admit(make_sequence(2, 4, 9, Priority::kNormal));
  scheduler.admit(make_sequence(3, 4, 9, Priority::kHigh));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{3, 0, 4}, RowIs{2, 0, 1}));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{3, 4, 1}, RowIs{2, 1, 3}, RowIs{1, 0, 1}));
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
  scheduler.admit(make_sequence(1, 11));
  for (const SequenceId id : {2u, 3u}) scheduler.admit(make_follower(id, 1, 11));
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
  EXPECT_EQ(scheduler->blocks().references(leader[0]), 3 + 1);  // The cache's is one.
}

TEST(Scheduler, NothingIsCopiedWhenTheLastTokenBeginsABlock) {
  CheckedScheduler scheduler(options_of(100, 4, 16));
  scheduler.admit(make_sequence(1, 9));
  scheduler.admit(make_follower(2, 1, 9));
  scheduler.step();
  const StepPlan plan = scheduler.plan();
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_THAT(plan.rows, ElementsAre(RowIs{1, 9, 1}, RowIs{2, 8, 1}));
}

TEST(Scheduler, AFollowerWhoseLeaderIsGoneReadsTheRestItself) {
  CheckedScheduler scheduler(options_of(100, 4, 8));
  scheduler.admit(make_sequence(1, 12));
  scheduler.admit(make_follower(2, 1, 12));
  scheduler.step();
  scheduler->finish(1);
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{2, 8, 4}));
}

TEST(Scheduler, AcceptedDraftsCountAndWrongOnesAreRolledBack) {
  CheckedScheduler scheduler(options_of(100, 2, 16));
  scheduler.admit(make_sequence(1, 3));
  scheduler.step();  // [1 1 1] 7
  scheduler->propose(1, std::vector<TokenId>{5, 6, 8, 9});
  const StepPlan plan = scheduler.plan();
  EXPECT_THAT(plan.rows, ElementsAre(RowIs{1, 3, 5}));
  EXPECT_EQ(plan.rows[0].num_logits(), 5);
  EXPECT_EQ(scheduler->find(1)->blocks.size(), 4u);
  const std::vector<TokenId> right = {5, 6, 2};
  scheduler->commit(plan, std::vector<Accepted>{{right}});
  EXPECT_EQ(scheduler->find(1)->computed, 6);
  EXPECT_EQ(scheduler->find(1)->blocks.size(), 3u);
  EXPECT_THAT(scheduler->find(1)->tokens, ElementsAre(1, 1, 1, 7, 5, 6, 2));
  EXPECT_THAT(scheduler.plan().rows, ElementsAre(RowIs{1, 6, 1}));
}

TEST(Scheduler, DraftsEndBeforeTheLongestLength) {
  CheckedScheduler scheduler(options_of(100, 2, 16));
  scheduler.admit(make_sequence(1, 3, 7));
  scheduler.step();  // 4 of 7: two drafts and the token after them.
  scheduler->propose(1, std::vector<TokenId>{5, 5, 5, 5});
  EXPECT_THAT(scheduler.plan().rows, ElementsAre(RowIs{1, 3, 3}));
}

TEST(Scheduler, DraftsFillUpSmallStepsOnly) {
  SchedulerOptions options = options_of(100, 2, 100);
  options.max_tokens_with_drafts = 7;
  CheckedScheduler scheduler(options);
  for (SequenceId id = 1; id <= 3; ++id) scheduler.admit(make_sequence(id, 3));
  scheduler.step();
  const auto propose = [&] {
    for (SequenceId id = 1; id <= 3; ++id) scheduler->propose(id, std::vector<TokenId>{5, 5, 5});
  };
  propose();
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 3, 4}, RowIs{2, 3, 2}, RowIs{3, 3, 1}));
  propose();
  scheduler.admit(make_sequence(4, 9));
  EXPECT_THAT(scheduler.step().rows,
              ElementsAre(RowIs{1, 4, 1}, RowIs{2, 4, 1}, RowIs{3, 4, 1}, RowIs{4, 0, 9}));
}

TEST(Scheduler, DraftsNeverTakeBlocksFromOthers) {
  CheckedScheduler scheduler(options_of(4, 2, 16));
  scheduler.admit(make_sequence(1, 3, 8));
  scheduler.admit(make_sequence(2, 3, 8));
  scheduler.step();
  scheduler->propose(1, std::vector<TokenId>{5, 5, 5, 5});
  EXPECT_THAT(scheduler.plan().rows, ElementsAre(RowIs{1, 3, 1}, RowIs{2, 3, 1}));
}

TEST(Scheduler, LogitsOfThePromptAreAskedForOnce) {
  for (const bool keeps_blocks : {true, false}) {
    SchedulerOptions options = options_of(3, 4, 100);
    options.max_scored_row = 4;
    options.keeps_blocks = keeps_blocks;
    CheckedScheduler scheduler(options);
    auto sequence = make_sequence(2, 6, 9);
    sequence->logits_from = 0;
    scheduler.admit(std::move(sequence));
    StepPlan plan = scheduler.step();
    EXPECT_THAT(plan.rows, ElementsAre(RowIs{2, 0, 4}));
    EXPECT_EQ(plan.rows[0].num_scored(), 4);
    scheduler.admit(make_sequence(1, 8, 10, Priority::kHigh));
    EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 0, 8}));  // 2 is preempted.
    scheduler->finish(1);
    plan = scheduler.step();
    EXPECT_THAT(plan.rows, ElementsAre(keeps_blocks ? RowIs{2, 4, 2} : RowIs{2, 0, 5}));
    EXPECT_EQ(plan.rows[0].num_scored(), 1);
  }
}

}  // namespace
}  // namespace trtmc
