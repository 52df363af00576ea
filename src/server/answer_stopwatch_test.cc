#include "server/answer_stopwatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/generation.h"

namespace trtmc {
namespace {

using testing::ElementsAre;

// What it was told, without the times, which are checked to be some.
class Notes final : public GenerationObserver {
 public:
  void first_token(double seconds) override { add("first", seconds); }
  void next_token(double seconds) override { add("next", seconds); }
  void ended(FinishReason reason) override { said.emplace_back(to_string(reason)); }
  void request_ended(double seconds) override { add("all", seconds); }

  std::vector<std::string> said;

 private:
  void add(const char* what, double seconds) {
    EXPECT_GE(seconds, 0);
    EXPECT_LT(seconds, 60);
    said.emplace_back(what);
  }
};

TEST(AnswerStopwatch, SaysHowTokensCome) {
  const auto notes = std::make_shared<Notes>();
  {
    AnswerStopwatch watch(notes);
    watch.start(1);
    watch.token(0);
    watch.token(0);
    watch.token(0);
    watch.ended(FinishReason::kLength);
  }
  EXPECT_THAT(notes->said, ElementsAre("first", "next", "next", "length", "all"));
}

// A request has one first token, and each answer its own next ones.
TEST(AnswerStopwatch, KeepsAnswersApart) {
  const auto notes = std::make_shared<Notes>();
  {
    AnswerStopwatch watch(notes);
    watch.start(2);
    watch.token(1);
    watch.token(0);
    watch.token(1);
    watch.ended(FinishReason::kStop);
    watch.ended(FinishReason::kLength);
  }
  EXPECT_THAT(notes->said, ElementsAre("first", "next", "stop", "length", "all"));
}

TEST(AnswerStopwatch, AnswersThatNobodyWaitsForAreCancelled) {
  const auto notes = std::make_shared<Notes>();
  {
    AnswerStopwatch watch(notes);
    watch.start(3);
    watch.ended(FinishReason::kError);
  }
  EXPECT_THAT(notes->said, ElementsAre("error", "cancelled", "cancelled", "all"));
}

// What fails after the last answer's end is no answer.
TEST(AnswerStopwatch, NoMoreAnswersEndThanWereStarted) {
  const auto notes = std::make_shared<Notes>();
  {
    AnswerStopwatch watch(notes);
    watch.start(1);
    watch.ended(FinishReason::kStop);
    watch.ended(FinishReason::kError);
  }
  EXPECT_THAT(notes->said, ElementsAre("stop", "all"));
}

TEST(AnswerStopwatch, ARequestThatWasRefusedIsNone) {
  const auto notes = std::make_shared<Notes>();
  { const AnswerStopwatch watch(notes); }
  EXPECT_THAT(notes->said, ElementsAre());
}

TEST(AnswerStopwatch, WithoutAnObserverItDoesNothing) {
  AnswerStopwatch watch(nullptr);
  watch.start(1);
  watch.token(0);
  watch.ended(FinishReason::kStop);
}

}  // namespace
}  // namespace trtmc
