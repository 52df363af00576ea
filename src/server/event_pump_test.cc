#include "server/event_pump.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <thread>

namespace trtmc {
namespace {

// Is done after so many looks, or throws instead.
class CountedTask final : public EventPump::Task {
 public:
  CountedTask(std::atomic<int>& looks, int max_looks, bool throws = false)
      : looks_(looks), max_looks_(max_looks), throws_(throws) {}

  Progress advance() override {
    const bool is_done = ++looks_ == max_looks_;
    if (is_done && throws_) throw std::bad_alloc();
    return is_done ? Progress::kDone : Progress::kWaits;
  }
  void cancel() override { looks_ = 100; }

 private:
  std::atomic<int>& looks_;
  const int max_looks_;
  const bool throws_;
};

void await(const std::atomic<int>& looks, int count) {
  while (looks < count) std::this_thread::yield();
}

void await_tasks(const EventPump& pump, int count) {
  while (pump.num_tasks() != count) std::this_thread::yield();
}

TEST(EventPump, ATaskThatThrowsDiesAndTheOthersGoOn) {
  std::atomic<int> bad_looks = 0, good_looks = 0;
  EventPump pump;
  const auto bad = pump.reserve(), good = pump.reserve();
  pump.add(bad, std::make_unique<CountedTask>(bad_looks, 1, true));
  pump.add(good, std::make_unique<CountedTask>(good_looks, 2));
  await_tasks(pump, 1);
  EXPECT_EQ(bad_looks, 1);
  good->wake();
  await(good_looks, 1);
  bad->wake();  // Nobody is there.
  good->wake();
  await_tasks(pump, 0);
  EXPECT_EQ(good_looks, 2);
}

TEST(EventPump, ATaskThatComesAfterItsCancelIsCancelled) {
  std::atomic<int> looks = 0;
  EventPump pump;
  const auto place = pump.reserve();
  place->wake();  // For nobody.
  place->cancel();
  pump.add(place, std::make_unique<CountedTask>(looks, 101));
  await_tasks(pump, 0);
  EXPECT_EQ(looks, 101);
}

// Has always more.
class EndlessTask final : public EventPump::Task {
 public:
  explicit EndlessTask(std::atomic<int>& looks) : looks_(looks) {}
  Progress advance() override {
    ++looks_;
    return Progress::kHasMore;
  }
  void cancel() override {}

 private:
  std::atomic<int>& looks_;
};

TEST(EventPump, ATaskThatAlwaysHasMoreKeepsNobodyWaiting) {
  std::atomic<int> endless_looks = 0, looks = 0;
  EventPump pump;
  const auto endless = pump.reserve(), other = pump.reserve();
  pump.add(endless, std::make_unique<EndlessTask>(endless_looks));
  await(endless_looks, 2);  // Nobody has woken it a second time.
  pump.add(other, std::make_unique<CountedTask>(looks, 2));
  await(looks, 1);
  other->wake();
  await_tasks(pump, 1);
}

TEST(EventPump, TasksThatAreLeftDieWithIt) {
  std::atomic<int> looks = 0;
  std::shared_ptr<EventPump::Place> place;
  {
    EventPump pump;
    place = pump.reserve();
    pump.add(place, std::make_unique<CountedTask>(looks, 2));
    await(looks, 1);
  }
  EXPECT_EQ(looks, 1);
}

TEST(EventPump, WakesMayComeWhileItDiesAndAfterwards) {
  std::atomic<int> looks = 0;
  std::atomic<bool> is_over = false;
  std::thread waker;
  {
    EventPump pump;
    const auto place = pump.reserve();
    pump.add(place, std::make_unique<CountedTask>(looks, 1'000'000'000));
    waker = std::thread([place, &is_over] {
      while (!is_over) place->wake();
      place->cancel();
    });
    await(looks, 100);
  }
  const int looks_at_its_end = looks;
  is_over = true;
  waker.join();
  EXPECT_EQ(looks, looks_at_its_end);
}

}  // namespace
}  // namespace trtmc
