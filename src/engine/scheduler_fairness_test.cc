// Who is served when, and what sequences share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/checked_scheduler.h"

namespace trtmc {
namespace {

using testing::ElementsAre;

// Ids of their own for the tokens, so that sequences share what they are given in common.
std::unique_ptr<Sequence> sequence_of(SequenceId id, std::vector<TokenId> prompt) {
  auto sequence = make_sequence(id, static_cast<int>(prompt.size()));
  sequence->tokens = std::move(prompt);
  return sequence;
}

TEST(Scheduler, TakesOverBlocksOfAnEarlierSequence) {
  CheckedScheduler scheduler(options_of(100, 4, 100));
  scheduler.admit(sequence_of(1, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  scheduler.step();
  const std::vector<BlockId> blocks = scheduler->find(1)->blocks;
  scheduler->finish(1);
  scheduler.admit(sequence_of(2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  scheduler.admit(sequence_of(3, {1, 2, 3, 4, 0, 6, 7, 8, 9}));  // Another second block.
  scheduler.admit(sequence_of(4, {0, 2, 3, 4, 5, 6, 7, 8, 9}));  // Another first one.
  scheduler.admit(sequence_of(5, {1, 2, 3, 4, 5, 6, 7, 8}));     // Its last token is computed.
  EXPECT_THAT(scheduler.step().rows,
              ElementsAre(RowIs{2, 8, 2}, RowIs{3, 4, 5}, RowIs{4, 0, 9}, RowIs{5, 4, 4}));
  EXPECT_EQ(scheduler->find(2)->cached, 8);
  EXPECT_EQ(scheduler->find(2)->blocks[1], blocks[1]);
  EXPECT_EQ(scheduler->find(5)->cached, 4);
  // What 5 computed was there already: it has changed over to that block.
  EXPECT_EQ(scheduler->find(5)->blocks[1], blocks[1]);
}

TEST(Scheduler, KeepsNothingWithoutTheCache) {
  SchedulerOptions options = options_of(100, 4, 100);
  options.keeps_blocks = false;
  CheckedScheduler scheduler(options);
  scheduler.admit(sequence_of(1, {1, 2, 3, 4, 5}));
  scheduler.step();
  scheduler->finish(1);
  EXPECT_EQ(scheduler->blocks().num_free(), 100);
  scheduler.admit(sequence_of(2, {1, 2, 3, 4, 5}));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{2, 0, 5}));
}

TEST(Scheduler, APreemptedSequenceFindsItsBlocksAgain) {
  CheckedScheduler scheduler(options_of(6, 2, 16));
  scheduler.admit(make_sequence(1, 4, 12));
  scheduler.admit(make_sequence(2, 5, 12));
  for (int i = 0; i < 4; ++i) scheduler.step();
  ASSERT_EQ(scheduler->waiting().size(), 1u);  // 2 gave its three blocks up.
  scheduler->finish(1);
  // The last of its three full blocks went to 1; those before are there still.
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{2, 4, 3}));
  EXPECT_EQ(scheduler->find(2)->cached, 0);  // Its own.
}

TEST(Scheduler, APromptTakesOverWhatAnotherHasReadMeanwhile) {
  CheckedScheduler scheduler(options_of(100, 2, 8));
  scheduler.admit(sequence_of(1, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  scheduler.admit(sequence_of(2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 0, 8}));  // The shorter one.
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 8, 1}, RowIs{2, 8, 4}));
  EXPECT_EQ(scheduler->find(2)->cached, 8);
  scheduler.admit(sequence_of(3, {1, 2, 3, 4, 5, 6, 0}));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 9, 1}, RowIs{2, 12, 1}, RowIs{3, 6, 1}));
}

TEST(Scheduler, ALongPromptHoldsUpNobody) {
  constexpr int kLong = 30'000, kBudget = 512;
  CheckedScheduler scheduler(options_of(2000, 32, kBudget));
  scheduler.admit(make_sequence(1, 20, 4000));
  scheduler.step();
  scheduler.admit(make_sequence(2, kLong, kLong + 10));
  scheduler.step();
  scheduler.admit(make_sequence(3, 300, 400));
  int steps_of_short = 0, steps_of_long = 1;
  while (!scheduler->find(2)->prompt_computed()) {
    const int size_before = scheduler->find(1)->size();
    if (!scheduler->find(3)->prompt_computed()) ++steps_of_short;
    ++steps_of_long;
    scheduler.step();
    ASSERT_EQ(scheduler->find(1)->size(), size_before + 1) << "a step without a token for 1";
  }
  // Of 511 tokens a step the short one gets 255.
  EXPECT_EQ(steps_of_short, 2);
  // 30 000 and 300 tokens; two sequences generate most of the time.
  EXPECT_EQ(steps_of_long, (kLong + 300 + kBudget - 3) / (kBudget - 2));
}

TEST(Scheduler, ALongPromptIsReadAmongEverMoreShortOnes) {
  CheckedScheduler scheduler(options_of(300, 4, 16));
  scheduler.admit(make_sequence(1, 400, 500));
  SequenceId next = 2;
  int steps = 0;
  for (; !scheduler->find(1)->prompt_computed(); ++steps) {
    scheduler.admit(make_sequence(next++, 15, 20, Priority::kNormal));
    scheduler.step();
    for (SequenceId id = 2; id < next; ++id) {
      const Sequence* sequence = scheduler->find(id);
      if (sequence && sequence->size() > 17) scheduler->finish(id);
    }
    ASSERT_LT(steps, 200);
  }
  // At least half of what those that generate leave, of which there are never more than 8.
  EXPECT_LE(steps, 400 / ((16 - 8) / 2));
}

// 2 needs 30 blocks, and 27 are free.
TEST(Scheduler, WhoFindsNoBlocksHoldsUpNobody) {
  SchedulerOptions options = options_of(65, 4, 1000, 100);
  options.max_steps_passed_over = 3;
  CheckedScheduler scheduler(options);
  scheduler.admit(make_sequence(1, 150, 200));
  scheduler.step();
  scheduler.admit(make_sequence(2, 118, 130));
  for (SequenceId id = 3; id <= 5; ++id) scheduler.admit(make_sequence(id, 30, 40));  // 8 each.
  EXPECT_THAT(scheduler.step().rows,
              ElementsAre(RowIs{1, 150, 1}, RowIs{3, 0, 30}, RowIs{4, 0, 30}, RowIs{5, 0, 30}));
  for (SequenceId id = 3; id <= 5; ++id) scheduler->finish(id);
  // No longer than so many steps, then it is the first again.
  scheduler.admit(make_sequence(6, 3, 30));
  for (int i = 0; i < 3; ++i) scheduler.step();
  scheduler.admit(make_sequence(7, 3, 5));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 154, 1}, RowIs{6, 5, 1}));
  scheduler->finish(1);
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{6, 6, 1}, RowIs{2, 0, 118}, RowIs{7, 0, 3}));
}

// 3 needs five blocks; one is free, and what 2 has are three.
TEST(Scheduler, NobodyGivesWayInVain) {
  CheckedScheduler scheduler(options_of(9, 2, 100));
  scheduler.admit(make_sequence(1, 9, 14));
  scheduler.admit(make_sequence(2, 5, 14, Priority::kLow));
  scheduler.step();
  scheduler.admit(make_sequence(3, 9, 12, Priority::kNormal));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 9, 1}, RowIs{2, 5, 1}));
  EXPECT_EQ(scheduler->num_preemptions(), 0);
}

// What two share is free once both have gone.
TEST(Scheduler, BlocksThatTwoShareAreGivenUpByBoth) {
  CheckedScheduler scheduler(options_of(6, 2, 100));
  for (SequenceId id = 1; id <= 2; ++id) {
    auto sequence = sequence_of(id, {1, 2, 3, 4, static_cast<TokenId>(id)});
    sequence->max_length = 10;
    scheduler.admit(std::move(sequence));
    scheduler.step();
  }
  // 1 takes a fourth block, so that one is free: 3 needs all the others.
  scheduler.admit(make_sequence(3, 11, 12, Priority::kHigh));
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{3, 0, 11}));
  EXPECT_EQ(scheduler->num_preemptions(), 2);
}

TEST(Scheduler, APriorityIsALeadAndNoMore) {
  CheckedScheduler scheduler(options_of(70, 32, 8, 1));
  scheduler.admit(make_sequence(1, 3, 2000));
  scheduler.step();
  scheduler.admit(make_sequence(2, 3, 5, Priority::kNormal));
  scheduler.admit(make_sequence(3, 3, 5, Priority::kHigh));
  EXPECT_EQ(scheduler->waiting()[0]->id, 1u + 2u);
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{3, 0, 3}));  // 1 gave way.
  scheduler->finish(3);
  while (scheduler->find(1)->size() < 3 + kPriorityLeadSteps) scheduler.step();
  scheduler.admit(make_sequence(4, 3, 5, Priority::kHigh));
  EXPECT_EQ(scheduler->waiting()[0]->id, 2u);  // Has waited longer than the lead.
  EXPECT_THAT(scheduler.step().rows, ElementsAre(RowIs{1, 1026, 1}));
}

}  // namespace
}  // namespace trtmc
