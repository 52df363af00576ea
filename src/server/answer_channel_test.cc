#include "server/answer_channel.h"

#include <gtest/gtest.h>

#include <thread>

namespace trtmc {
namespace {

HttpResponse head(std::string body = "") {
  return text_response(200, "text/plain", std::move(body));
}

struct Ends {
  explicit Ends(std::chrono::milliseconds unsent_time = {}) : limit{10, unsent_time} {}

  const UnsentLimit limit;
  int num_wakes = 0;
  std::shared_ptr<AnswerChannel> channel =
      std::make_shared<AnswerChannel>([this] { ++num_wakes; }, limit, ServedRequestLog());
  std::shared_ptr<Exchange> exchange = make_exchange(HttpRequest(), channel);
};

TEST(AnswerChannel, HandsPiecesOverTogetherAfterOneWake) {
  Ends ends;
  ends.exchange->start_stream(head("1"));
  ends.exchange->write("23");
  ends.exchange->write("4");
  EXPECT_EQ(ends.num_wakes, 1);
  AnswerChannel::Output output = ends.channel->take();
  EXPECT_EQ(output.head->status, 200);
  EXPECT_TRUE(output.is_stream);
  EXPECT_EQ(output.bytes, "1234");
  EXPECT_FALSE(output.has_ended);
  ends.exchange->end_stream();
  EXPECT_EQ(ends.num_wakes, 2);
  output = ends.channel->take();
  EXPECT_FALSE(output.head);
  EXPECT_EQ(output.bytes, "");
  EXPECT_TRUE(output.has_ended);
}

TEST(AnswerChannel, SaysForItsMakerThatThereWasNoMemory) {
  Ends ends;
  ends.exchange->fail_for_memory();
  ends.exchange.reset();
  const AnswerChannel::Output whole = ends.channel->take();
  EXPECT_EQ(whole.head->status, 503);
  EXPECT_TRUE(whole.has_ended);
  Ends streaming;
  streaming.exchange->start_stream(head("1"));
  streaming.exchange->fail_for_memory();
  EXPECT_EQ(streaming.num_wakes, 1);
  const AnswerChannel::Output output = streaming.channel->take();
  EXPECT_EQ(output.head->status, 200);
  EXPECT_TRUE(output.bytes.starts_with("1data: {\"error\":{\"message\":\"out of memory\""));
  EXPECT_TRUE(output.has_ended);
  EXPECT_FALSE(output.is_broken);
}

TEST(AnswerChannel, BreaksWhenMoreIsUnsentThanMayBe) {
  Ends ends;
  ends.exchange->start_stream(head());
  ends.exchange->write("1234567890");
  EXPECT_EQ(ends.channel->take().bytes, "1234567890");
  ends.channel->on_sent(10);
  ends.exchange->write("1234567890");
  EXPECT_FALSE(ends.channel->take().is_broken);
  ends.exchange->write("1");  // Taken is not sent.
  EXPECT_TRUE(ends.channel->take().is_broken);
}

TEST(AnswerChannel, HoldsNoSilenceOfTheMakerAgainstTheClient) {
  constexpr std::chrono::milliseconds kTime{200};
  Ends ends(kTime);
  ends.exchange->start_stream(head("1"));
  ends.channel->take();
  ends.channel->on_progress();
  ends.channel->on_sent(1);
  std::this_thread::sleep_for(2 * kTime);
  ends.exchange->write(std::string(100, 'x'));
  EXPECT_FALSE(ends.channel->take().is_broken);
  std::this_thread::sleep_for(2 * kTime);
  ends.exchange->write("1");  // Now it has had the time to take some.
  EXPECT_TRUE(ends.channel->take().is_broken);
}

TEST(AnswerChannel, TakesNothingOnceTheClientIsGone) {
  Ends ends;
  int num_gone = 0;
  ends.exchange->on_gone([&] { ++num_gone; });
  ends.channel->lose();
  ends.channel->lose();
  EXPECT_EQ(num_gone, 1);
  ends.exchange->respond(head("1"));
  ends.exchange.reset();
  EXPECT_FALSE(ends.channel->take().head);
  EXPECT_EQ(ends.num_wakes, 0);
}

TEST(AnswerChannel, ForgetsItsActionAtTheEnd) {
  Ends ends;
  const auto held = std::make_shared<int>();
  ends.exchange->on_gone([held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 2);
  ends.exchange->respond(head());
  EXPECT_EQ(held.use_count(), 1);
  ends.channel->lose();
}

TEST(AnswerChannel, AnswersForAMakerThatDies) {
  Ends ends;
  ends.exchange.reset();
  EXPECT_EQ(ends.channel->take().head->status, 500);
  Ends streaming;
  streaming.exchange->start_stream(head());
  streaming.exchange.reset();
  EXPECT_TRUE(streaming.channel->take().is_broken);
}

}  // namespace
}  // namespace trtmc
