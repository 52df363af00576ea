#include "base/background_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace trtmc {
namespace {

class BackgroundLogTest : public testing::Test {
 protected:
  ~BackgroundLogTest() override { set_log_sink({}); }
};

TEST_F(BackgroundLogTest, HandsAllLinesOverInTheirOrder) {
  std::vector<std::string> seen;
  {
    const BackgroundLog log([&](LogLevel, std::string_view line) { seen.emplace_back(line); });
    for (int i = 0; i < 1000; ++i) log_info("{}", i);
  }
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], std::to_string(i));
}

TEST_F(BackgroundLogTest, GoesStraightToTheSinkAfterwards) {
  std::vector<std::string> seen;
  {
    const BackgroundLog log([&](LogLevel, std::string_view line) { seen.emplace_back(line); });
  }
  log_info("after");
  EXPECT_THAT(seen, testing::ElementsAre("after"));
}

TEST_F(BackgroundLogTest, LeavesALineOutThatFindsNoMemory) {
  std::vector<std::string> seen;
  {
    const BackgroundLog log([&](LogLevel, std::string_view line) {
      if (line == "1") throw std::bad_alloc();
      seen.emplace_back(line);
    });
    for (int i = 0; i < 3; ++i) log_info("{}", i);
  }
  EXPECT_THAT(seen, testing::ElementsAre("0", "2"));
}

TEST_F(BackgroundLogTest, DoesNotWaitForASinkThatStandsStill) {
  std::promise<void> go_on;
  const std::shared_future<void> may_go_on(go_on.get_future());
  std::vector<std::string> seen;
  std::mutex mutex;
  {
    const BackgroundLog log([&](LogLevel, std::string_view line) {
      may_go_on.wait();
      const std::lock_guard lock(mutex);
      seen.emplace_back(line);
    });
    // Three times what may wait.
    for (int i = 0; i < 3000; ++i) log_info("{:1024}", i);
    go_on.set_value();
  }
  ASSERT_GE(seen.size(), 1024U);
  EXPECT_THAT(seen.back(), testing::EndsWith("lines of the log were lost: they come faster than "
                                             "they can be written"));
  // One line more or less had been taken from those that wait.
  const int num_lost = std::stoi(seen.back());
  EXPECT_EQ(num_lost + static_cast<int>(seen.size()) - 1, 3000);
}

}  // namespace
}  // namespace trtmc
