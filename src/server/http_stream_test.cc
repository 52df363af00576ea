// Answers in pieces, and clients that go away or do not read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/http_server.h"
#include "tests/support/captured_log.h"
#include "tests/support/http_peer.h"

namespace trtmc {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

HttpResponse events(std::string first = "") {
  return text_response(200, "text/event-stream", std::move(first));
}

// A server, a client that has asked, and the exchange of its request.
struct Asked {
  explicit Asked(const HttpServerOptions& options = local_options(), std::string_view bytes = kGet,
                 int receive_buffer_bytes = 0)
      : server(options, queue.handler(), served.log()),
        socket(server.port(), receive_buffer_bytes) {
    socket.send(bytes);
    exchange = queue.next();
  }

  ExchangeQueue queue;
  ServedQueue served;
  HttpServer server;
  RawSocket socket;
  std::shared_ptr<Exchange> exchange;
};

TEST(HttpStream, SendsEachPieceAtOnceAsAChunk) {
  Asked asked;
  asked.exchange->start_stream(events("data: 1\n\n"));
  const std::string head = asked.socket.read_until("9\r\ndata: 1\n\n\r\n");
  EXPECT_THAT(head, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  asked.exchange->write("data: 22\n\n");
  EXPECT_EQ(asked.socket.read_until("\n\r\n"), "a\r\ndata: 22\n\n\r\n");
  asked.exchange->end_stream();
  EXPECT_EQ(asked.socket.read(5), "0\r\n\r\n");
  asked.socket.send(kGet);  // The connection goes on.
  asked.queue.next()->respond(plain("next"));
  EXPECT_THAT(asked.socket.read_answer(), EndsWith("next"));
  EXPECT_TRUE(std::exchange(asked.exchange, nullptr) != nullptr);
  EXPECT_TRUE(asked.served.next().complete);
}

TEST(HttpStream, EndsWithTheConnectionInHttp10) {
  Asked asked(local_options(), "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  asked.exchange->start_stream(events("data: 1\n\n"));
  asked.exchange->write("data: 2\n\n");
  asked.exchange->end_stream();
  const std::string all = asked.socket.read_to_end();
  EXPECT_THAT(all, AllOf(HasSubstr("\r\nConnection: close\r\n"), Not(HasSubstr("chunked"))));
  EXPECT_THAT(all, EndsWith("\r\n\r\ndata: 1\n\ndata: 2\n\n"));
}

TEST(HttpStream, SendsAHeadAloneForHead) {
  Asked asked(local_options(), "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  asked.exchange->start_stream(events("data: 1\n\n"));
  asked.exchange->end_stream();
  EXPECT_THAT(asked.socket.read_to_end(), EndsWith("\r\n\r\n"));
}

TEST(HttpStream, TakesPiecesFromManyThreads) {
  constexpr int kThreads = 4, kPieces = 500;
  Asked asked;
  asked.exchange->start_stream(events());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int piece = 0; piece < kPieces; ++piece) asked.exchange->write("x");
    });
  }
  for (std::thread& thread : threads) thread.join();
  asked.exchange->end_stream();
  const std::string answer = asked.socket.read_answer();
  const std::string body = answer.substr(answer.find("\r\n\r\n"));
  EXPECT_EQ(std::count(body.begin(), body.end(), 'x'), kThreads * kPieces);
}

TEST(HttpStream, SendsCommentsWhileNothingHasToBeSaid) {
  HttpServerOptions options = local_options();
  options.heartbeat = milliseconds(10);
  Asked asked(options);
  asked.exchange->start_stream(events("data: 1\n\n"));
  asked.socket.read_until("data: 1\n\n\r\n");
  EXPECT_EQ(asked.socket.read(16), "3\r\n:\n\n\r\n3\r\n:\n\n\r\n");
  asked.exchange->end_stream();
  EXPECT_THAT(asked.socket.read_until("0\r\n\r\n"), EndsWith("0\r\n\r\n"));
}

TEST(HttpStream, SendsNoCommentsIntoWhatAreNoEvents) {
  HttpServerOptions options = local_options();
  options.heartbeat = milliseconds(1);
  Asked asked(options);
  asked.exchange->start_stream(plain("1"));
  std::this_thread::sleep_for(milliseconds(20));
  asked.exchange->end_stream();
  EXPECT_THAT(asked.socket.read_answer(), EndsWith("\r\n\r\n1\r\n1\r\n0\r\n\r\n"));
}

TEST(HttpStream, GoesOnForWhoHasFinishedSending) {
  Asked asked;
  asked.exchange->start_stream(events("data: 1\n\n"));
  asked.socket.read_until("data: 1\n\n\r\n");
  asked.socket.finish_sending();
  EXPECT_EQ(asked.socket.read(8), "3\r\n:\n\n\r\n");  // Who has gone would be noticed by it.
  asked.exchange->write("data: 2\n\n");
  asked.exchange->end_stream();
  EXPECT_THAT(asked.socket.read_to_end(), EndsWith("data: 2\n\n\r\n0\r\n\r\n"));
  EXPECT_FALSE(asked.socket.was_reset());
}

// ---- An exchange that nobody answers ----

TEST(HttpStream, SaysThatARequestWasNotAnswered) {
  Asked asked;
  asked.exchange.reset();
  EXPECT_THAT(asked.socket.read_answer(), StartsWith("HTTP/1.1 500"));
}

TEST(HttpStream, CutsAStreamOffThatIsNotEnded) {
  Asked asked;
  asked.exchange->start_stream(events("data: 1\n\n"));
  asked.socket.read_until("data: 1\n\n\r\n");
  asked.exchange.reset();
  EXPECT_EQ(asked.socket.read_to_end(), "");  // No last chunk.
  const ServedRequest request = asked.served.next();
  EXPECT_EQ(request.status, 200);
  EXPECT_FALSE(request.complete);
}

TEST(HttpStream, TakesNoSecondAnswer) {
  Asked asked;
  asked.exchange->respond(plain("1"));
  asked.exchange->respond(plain("2"));
  asked.exchange->start_stream(events("data"));
  asked.exchange->write("data");
  asked.exchange->end_stream();
  EXPECT_THAT(asked.socket.read_answer(), EndsWith("\r\n\r\n1"));
  asked.socket.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  asked.queue.next()->respond(plain("3"));
  EXPECT_THAT(asked.socket.read_to_end(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\n3")));
}

TEST(HttpStream, AnswersForAHandlerThatThrows) {
  const CapturedLog log;
  const HttpServer server(local_options(), [](const std::shared_ptr<Exchange>&) {
    throw std::runtime_error("a defect");
  });
  RawSocket socket(server.port());
  socket.send(kGet);
  EXPECT_THAT(socket.read_answer(), StartsWith("HTTP/1.1 500"));
}

// ---- Clients that go ----

TEST(HttpStream, TellsWhoAnswersThatTheClientHasClosed) {
  Asked asked;
  Flag gone;
  asked.exchange->on_gone([&] { gone.raise(); });
  asked.socket.close();
  EXPECT_TRUE(gone.wait());
}

TEST(HttpStream, TellsWhoStreamsThatTheClientHasBeenReset) {
  Asked asked;
  Flag gone;
  asked.exchange->start_stream(events("data: 1\n\n"));
  asked.exchange->on_gone([&] { gone.raise(); });
  asked.socket.read_until("data: 1\n\n\r\n");
  asked.socket.reset();
  EXPECT_TRUE(gone.wait());
  asked.exchange->write("into the void");
  asked.exchange->end_stream();
  asked.exchange.reset();
  EXPECT_FALSE(asked.served.next().complete);
}

TEST(HttpStream, TellsAtOnceWhoAsksAfterTheClientHasGone) {
  Asked asked;
  Flag gone, forgotten, late;
  asked.exchange->on_gone([&] { forgotten.raise(); });
  asked.exchange->on_gone([&] { gone.raise(); });
  asked.socket.close();
  EXPECT_TRUE(gone.wait());
  asked.exchange->on_gone([&] { late.raise(); });
  EXPECT_TRUE(late.is_raised());
  EXPECT_FALSE(forgotten.is_raised());
  EXPECT_EQ(gone.count(), 1);
}

TEST(HttpStream, TellsNobodyOnceTheAnswerHasEnded) {
  Asked asked;
  Flag gone;
  asked.exchange->on_gone([&] { gone.raise(); });
  asked.exchange->respond(plain("1"));
  asked.socket.read_answer();
  asked.socket.close();
  asked.exchange->on_gone([&] { gone.raise(); });
  asked.exchange.reset();
  EXPECT_TRUE(asked.served.next().complete);
  EXPECT_FALSE(gone.is_raised());
}

// ---- Clients that do not read ----

TEST(HttpStream, CutsAReaderOffThatLetsTooMuchPileUp) {
  HttpServerOptions options = local_options();
  options.max_unsent = {.bytes = size_t{256} << 10, .time = milliseconds(0)};
  Asked asked(options, kGet, 4096);
  Flag gone;
  asked.exchange->on_gone([&] { gone.raise(); });
  asked.exchange->start_stream(events());
  const std::string piece(size_t{64} << 10, 'x');
  // The system's buffers take some megabytes first.
  size_t num_pieces = 0;
  for (; !gone.is_raised() && num_pieces < 10'000; ++num_pieces) asked.exchange->write(piece);
  EXPECT_TRUE(gone.wait());
  RawSocket other(asked.server.port());
  other.send(kGet);
  asked.queue.next()->respond(plain("well"));
  EXPECT_THAT(other.read_answer(), EndsWith("well"));
}

TEST(HttpStream, SendsWhatComesAtOnceToAReaderOfGoodWill) {
  HttpServerOptions options = local_options();
  options.max_unsent.time = milliseconds(30'000);  // An emulated processor writes for seconds.
  Asked asked(options, kGet, 4096);
  asked.exchange->start_stream(events());
  const std::string piece(size_t{64} << 10, 'x');
  constexpr int kPieces = 320;  // 20 MiB, of which 1 may be unsent for longer.
  for (int i = 0; i < kPieces; ++i) asked.exchange->write(piece);
  asked.exchange->end_stream();
  EXPECT_GT(asked.socket.read_until("\r\n0\r\n\r\n").size(), kPieces * piece.size());
}

TEST(HttpStream, SendsALargeAnswerToAReaderThatIsSlowAtFirst) {
  Asked asked(local_options(), kGet, 4096);
  const std::string large(size_t{20} << 20, 'x');  // Far beyond what may be unsent of a stream.
  asked.exchange->respond(plain(large));
  const std::string answer = asked.socket.read_answer();
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, large.size());
}

// 25 MiB, of which the system itself keeps less than 10, and then 15: together more than 26.
TEST(HttpStream, CutsOffWhoLetsMostPileUpWhereItIsTooMuchForAll) {
  const CapturedLog log;
  HttpServerOptions options = local_options();
  options.max_held_bytes = size_t{26} << 20;
  Asked asked(options, kGet, 4096);
  asked.exchange->respond(plain(std::string(size_t{25} << 20, 'x')));
  asked.exchange.reset();
  RawSocket other(asked.server.port());
  other.send(kGet);
  const std::string fifteen(size_t{15} << 20, 'y');
  asked.queue.next()->respond(plain(fifteen));
  EXPECT_FALSE(asked.served.next().complete);
  EXPECT_THAT(other.read_answer(), EndsWith(fifteen));
}

TEST(HttpStream, CutsAReaderOffThatTakesNothing) {
  HttpServerOptions options = local_options();
  options.send_timeout = milliseconds(50);
  Asked asked(options, kGet, 4096);
  asked.exchange->respond(plain(std::string(size_t{20} << 20, 'x')));
  asked.exchange.reset();
  EXPECT_FALSE(asked.served.next().complete);
}

TEST(HttpStream, CutsAStreamOffThatTakesTooLong) {
  HttpServerOptions options = local_options();
  options.request_timeout = milliseconds(50);
  Asked asked(options);
  Flag gone;
  asked.exchange->on_gone([&] { gone.raise(); });
  asked.exchange->start_stream(plain("1"));
  EXPECT_TRUE(gone.wait());
  EXPECT_THAT(asked.socket.read_to_end(), Not(EndsWith("0\r\n\r\n")));
}

TEST(HttpStream, EndsAStreamOfEventsThatTakesTooLongWithAnError) {
  HttpServerOptions options = local_options();
  options.request_timeout = milliseconds(50);
  Asked asked(options);
  Flag gone;
  asked.exchange->on_gone([&] { gone.raise(); });
  asked.exchange->start_stream(events("data: 1\n\n"));
  EXPECT_TRUE(gone.wait());
  asked.exchange->write("data: too late\n\n");
  asked.exchange.reset();
  EXPECT_THAT(
      asked.socket.read_to_end(),
      AllOf(HasSubstr(
                R"(data: {"error":{"message":"the answer took too long","type":"timeout_error",)"),
            Not(HasSubstr("too late")), EndsWith("\n\n\r\n0\r\n\r\n")));
  EXPECT_FALSE(asked.served.next().complete);
}

TEST(HttpStream, EndsWithAnErrorWhenTheServerStops) {
  Asked asked(local_options());
  asked.exchange->start_stream(events("data: 1\n\n"));
  asked.server.drain();
  asked.server.cut_off();
  EXPECT_THAT(asked.socket.read_to_end(),
              HasSubstr("the answer was cut off, since the server stops"));
  EXPECT_TRUE(
      asked.server.await_drained(std::chrono::steady_clock::now() + std::chrono::seconds(10)));
}

}  // namespace
}  // namespace trtmc
