#include "engine/engine_invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/checked_scheduler.h"

namespace trtmc {
namespace {

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
    for (const auto& [block, cached] : s.cached) ++s.references[static_cast<size_t>(block)];
    s.num_free = static_cast<int>(std::ranges::count(s.references, 0));
  }));
  EXPECT_TRUE(damaged([](auto& s) { s.running[0].blocks.pop_back(); }));
  EXPECT_TRUE(damaged([](auto& s) { s.num_free += 1; }));
  EXPECT_TRUE(damaged([](auto& s) { s.running[0].computed = 6; }));
  EXPECT_TRUE(damaged([](auto& s) { s.running[0].tokens.resize(10); }));
  EXPECT_TRUE(damaged([](auto& s) { s.waiting.push_back(s.running[0]); }));
  EXPECT_TRUE(damaged([](auto& s) { s.running[0].tokens[0] = 9; }));
  EXPECT_TRUE(damaged([](auto& s) { s.cached.at(s.running[0].blocks[0]).tokens[1] = 9; }));
  EXPECT_TRUE(damaged([](auto& s) { s.cached.at(s.running[0].blocks[1]).parent = -1; }));
  EXPECT_TRUE(damaged([](auto& s) { s.idle.push_back(s.running[0].blocks[0]); }));
}

TEST(EngineInvariants, TheValidatorSeesWhatIsWrongAmongTheIdle) {
  CheckedScheduler scheduler(options_of(8, 2, 16));
  scheduler.admit(make_sequence(1, 5, 9));
  scheduler.step();
  scheduler->finish(1);
  const EngineSnapshot sound = take_snapshot(*scheduler);
  ASSERT_EQ(find_violation(sound), std::nullopt);
  ASSERT_EQ(sound.idle.size(), 2u);
  EngineSnapshot damaged = sound;
  std::swap(damaged.idle[0], damaged.idle[1]);  // A block would go before those that follow it.
  EXPECT_NE(find_violation(damaged), std::nullopt);
  damaged = sound;
  damaged.idle.pop_back();
  EXPECT_NE(find_violation(damaged), std::nullopt);
  damaged = sound;
  damaged.options.keeps_blocks = false;
  EXPECT_NE(find_violation(damaged), std::nullopt);
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
  EXPECT_TRUE(wrong([](auto& p) { p.rows[0].num_drafts = 1; }));
  EXPECT_TRUE(wrong([](auto& p) { p.copies.push_back({1, 0, 7}); }));
}

}  // namespace
}  // namespace trtmc
