#include "cli/interrupts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <thread>

namespace trtmc {
namespace {

constexpr auto kSoon = std::chrono::seconds(10);

// Once in this process, as in the program.
void install_once() {
  [[maybe_unused]] static const bool installed = [] {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGHUP, SIG_DFL);
    install_interrupts();
    return true;
  }();
}

// Sends the signal and waits until a scope's action was called.
class Action {
 public:
  std::function<void()> function() {
    return [this] { called_.set_value(); };
  }
  bool is_called_soon() {
    return called_.get_future().wait_for(kSoon) == std::future_status::ready;
  }

 private:
  std::promise<void> called_;
};

TEST(InterruptScope, CtrlCCallsTheInnermostAction) {
  install_once();
  Action action;
  const InterruptScope outer([] { ADD_FAILURE() << "the outer one is called"; });
  const InterruptScope inner(action.function());
  std::raise(SIGINT);
  EXPECT_TRUE(action.is_called_soon());
}

TEST(InterruptScope, TheOuterActionIsBackWhenTheInnerScopeEnds) {
  install_once();
  Action action;
  const InterruptScope outer(action.function());
  {
    const InterruptScope inner([] { ADD_FAILURE() << "the inner one is called"; });
  }
  std::raise(SIGINT);
  EXPECT_TRUE(action.is_called_soon());
}

// The signal may reach the watching thread before the inner scope begins or after: the action is
// called either way.
TEST(InterruptScope, ACtrlCThatWasKeptReachesTheNextScopeWithin) {
  install_once();
  for (int i = 0; i < 100; ++i) {
    Action action;
    const InterruptScope outer;
    std::raise(SIGINT);
    const InterruptScope inner(action.function());
    ASSERT_TRUE(action.is_called_soon());
  }
}

TEST(InterruptScope, SigtermCallsAnActionThatEndsTheProgram) {
  install_once();
  Action action;
  const InterruptScope scope(action.function(), InterruptScope::Termination::kActs);
  std::raise(SIGTERM);
  EXPECT_TRUE(action.is_called_soon());
}

TEST(InterruptScope, EverySignalCallsAnActionThatTakesThemAll) {
  install_once();
  for (const int number : {SIGHUP, SIGTERM, SIGINT, SIGINT, SIGTERM}) {
    std::promise<int> seen;
    const InterruptScope scope([&](int signal_number) { seen.set_value(signal_number); });
    std::raise(number);
    auto future = seen.get_future();
    ASSERT_EQ(future.wait_for(kSoon), std::future_status::ready);
    EXPECT_EQ(future.get(), number);
  }
}

TEST(InterruptScopeDeathTest, WithoutAScopeCtrlCEndsTheProgramWith130) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        install_once();
        std::raise(SIGINT);
        std::this_thread::sleep_for(kSoon);
      },
      testing::ExitedWithCode(130), "");
}

TEST(InterruptScopeDeathTest, ACtrlCTwoSecondsAfterOneThatDidNothingEndsTheProgramWith130) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        install_once();
        const InterruptScope scope([] {});
        std::raise(SIGINT);
        std::raise(SIGINT);  // Impatience alone is none.
        std::this_thread::sleep_for(std::chrono::milliseconds(2100));
        std::raise(SIGINT);
        std::this_thread::sleep_for(kSoon);
      },
      testing::ExitedWithCode(130), "");
}

TEST(InterruptScopeDeathTest, SigtermEndsTheProgramByTheSignal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        install_once();
        const InterruptScope scope([] {});
        std::raise(SIGTERM);
        std::this_thread::sleep_for(kSoon);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace trtmc
