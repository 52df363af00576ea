#include "server/reaper.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace trtmc {
namespace {

// Takes until `may_die` to do so.
struct SlowToDie {
  explicit SlowToDie(std::future<void> may_die) : permission(std::move(may_die)) {}
  ~SlowToDie() {
    if (permission.valid()) permission.wait();
    if (died_on != nullptr) died_on->set_value(std::this_thread::get_id());
  }

  std::future<void> permission;
  std::promise<std::thread::id>* died_on = nullptr;
};

TEST(Reaper, WhoLetsGoOfTheLastReferenceGoesOn) {
  std::promise<void> permission;
  std::promise<std::thread::id> died_on;
  Reaper reaper;
  auto object = reaper.in_care(std::make_shared<SlowToDie>(permission.get_future()));
  object->died_on = &died_on;
  auto other = object;
  object.reset();
  EXPECT_NE(other->died_on, nullptr);  // It lives.
  other.reset();                       // Would wait for ever here.
  permission.set_value();
  EXPECT_NE(died_on.get_future().get(), std::this_thread::get_id());
}

TEST(Reaper, WhatIsLetGoOfAfterItsEndDiesThere) {
  std::promise<std::thread::id> died_on;
  std::shared_ptr<SlowToDie> object;
  {
    Reaper reaper;
    object = reaper.in_care(std::make_shared<SlowToDie>(std::future<void>()));
    object->died_on = &died_on;
  }
  object.reset();
  EXPECT_EQ(died_on.get_future().get(), std::this_thread::get_id());
}

TEST(Reaper, WaitsAtItsEndForWhatDies) {
  std::promise<std::thread::id> died_on;
  {
    Reaper reaper;
    reaper.in_care(std::make_shared<SlowToDie>(std::future<void>()))->died_on = &died_on;
  }
  EXPECT_EQ(died_on.get_future().wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

}  // namespace
}  // namespace trtmc
