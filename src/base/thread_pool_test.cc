#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "base/cpu_info.h"

namespace trtmc {
namespace {

// Leaves this thread one of its cores while it lives.
class OneCoreAlone {
 public:
  OneCoreAlone() {
    EXPECT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(usable_cores().back()), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OneCoreAlone() { sched_setaffinity(0, sizeof(before_), &before_); }
  OneCoreAlone(const OneCoreAlone&) = delete;
  OneCoreAlone& operator=(const OneCoreAlone&) = delete;

 private:
  cpu_set_t before_;
};

class ThreadPoolOf : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolOf, CallsTheTaskOnceOnEveryThread) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.num_threads(), GetParam());
  std::vector<int> calls(static_cast<size_t>(GetParam()));
  for (int round = 0; round < 1000; ++round) {
    pool.run([&](int thread) { ++calls[static_cast<size_t>(thread)]; });
  }
  EXPECT_EQ(calls, std::vector<int>(calls.size(), 1000));
}

TEST_P(ThreadPoolOf, EndsARunAfterTheWorkOfAll) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> parts(static_cast<size_t>(GetParam()));
  for (int64_t round = 1; round <= 200; ++round) {
    pool.run([&](int thread) { parts[static_cast<size_t>(thread)] = round; });
    ASSERT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}), round * GetParam());
  }
}

TEST_P(ThreadPoolOf, SharesEveryUnitOnce) {
  ThreadPool pool(GetParam());
  for (int64_t num_units = 0; num_units < 300; ++num_units) {
    // Plain integers, so that a unit still at work when share() returns is a race.
    std::vector<int> calls(static_cast<size_t>(num_units));
    pool.share(num_units, [&](int64_t unit, int thread) {
      ASSERT_GE(thread, 0);
      ASSERT_LT(thread, GetParam());
      ++calls[static_cast<size_t>(unit)];
    });
    ASSERT_EQ(calls, std::vector<int>(calls.size(), 1));
  }
}

TEST_P(ThreadPoolOf, GivesNoThreadTwoUnitsAtATime) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> sums(static_cast<size_t>(GetParam()));
  for (int round = 0; round < 200; ++round) {
    pool.share(50, [&](int64_t unit, int thread) { sums[static_cast<size_t>(thread)] += unit; });
    pool.run([](int) {});  // Runs between do not disturb it.
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), 200 * (49 * 50 / 2));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolOf, testing::Values(1, 2, 3, 8));

TEST(ThreadPool, CallsTheTaskOnTheCallerAsThreadZero) {
  ThreadPool pool(2);
  std::vector<std::thread::id> ids(2);
  pool.run([&](int thread) { ids[static_cast<size_t>(thread)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], std::this_thread::get_id());
}

TEST(ThreadPool, WakesThreadsThatHaveGoneToSleep) {
  ThreadPool pool(3);
  std::atomic<int> calls = 0;
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pool.run([&](int thread) {
      // The others finish long before the last, so that the caller sleeps too.
      if (thread == 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++calls;
    });
  }
  EXPECT_EQ(calls, 9);
}

// Which threads of a pool of four take part in a run, when `count` are used.
std::vector<int> calls_of_run(ThreadPool& pool, int count) {
  std::vector<int> calls(4);
  pool.use(count);
  pool.run([&](int thread) { ++calls[static_cast<size_t>(thread)]; });
  return calls;
}

TEST(ThreadPool, RunsOnAsManyThreadsAsAreUsed) {
  ThreadPool pool(4);
  for (int round = 0; round < 500; ++round) {
    ASSERT_EQ(calls_of_run(pool, 2), (std::vector<int>{1, 1, 0, 0}));
    ASSERT_EQ(calls_of_run(pool, 4), (std::vector<int>{1, 1, 1, 1}));
    ASSERT_EQ(calls_of_run(pool, 1), (std::vector<int>{1, 0, 0, 0}));
    ASSERT_EQ(calls_of_run(pool, 3), (std::vector<int>{1, 1, 1, 0}));
  }
}

TEST(ThreadPool, WakesThreadsThatWereNotUsedForLong) {
  ThreadPool pool(4);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(calls_of_run(pool, 2), (std::vector<int>{1, 1, 0, 0}));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(calls_of_run(pool, 4), (std::vector<int>{1, 1, 1, 1}));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(ThreadPool, SharesAmongTheThreadsThatAreUsed) {
  ThreadPool pool(4);
  for (int round = 0; round < 500; ++round) {
    const int count = 1 + round % 4;
    pool.use(count);
    std::vector<int> calls(64);
    pool.share(64, [&](int64_t unit, int thread) {
      ASSERT_LT(thread, count);
      ++calls[static_cast<size_t>(unit)];
    });
    ASSERT_EQ(calls, std::vector<int>(64, 1));
  }
}

TEST(ThreadPool, EndsWhileThreadsAreNotUsed) {
  ThreadPool pool(4);
  EXPECT_EQ(calls_of_run(pool, 2), (std::vector<int>{1, 1, 0, 0}));
}

TEST(ThreadPool, LeavesTheCallersAffinityAlone) {
  const std::vector<int> before = usable_cores();
  ThreadPool pool(2);
  pool.run([](int) {});
  EXPECT_EQ(usable_cores(), before);
}

TEST(ThreadPool, DefaultsToNoMoreThreadsThanCores) {
  const int cores = static_cast<int>(usable_cores().size());
  EXPECT_GE(ThreadPool::default_num_threads(), 1);
  EXPECT_LE(ThreadPool::default_num_threads(), cores);
  EXPECT_LE(static_cast<unsigned>(cores), std::thread::hardware_concurrency());
}

TEST(ThreadPool, DefaultsToOneThreadOnOneCore) {
  const OneCoreAlone affinity;
  EXPECT_EQ(ThreadPool::default_num_threads(), 1);
}

}  // namespace
}  // namespace trtmc
