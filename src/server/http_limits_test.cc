// What a server bounds, and bytes that are no request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <random>

#include "base/log.h"
#include "server/http_server.h"
#include "tests/support/http_peer.h"

namespace trtmc {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(HttpLimits, RefusesALargeBodyWithoutTakingIt) {
  HttpServerOptions options = local_options();
  options.max_body_bytes = 1000;
  const HttpServer server(options, echo);
  constexpr std::string_view kHead = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string head(kHead);
  EXPECT_THAT(ask(server.port(), head + "Content-Length: 1000\r\n\r\n" + std::string(1000, 'x')),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(server.port(), head + "Content-Length: 1001\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(ask(server.port(), head + "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(ask(server.port(), head + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n" +
                                     std::string(1000, 'x') + "\r\n1\r\n"),
              StartsWith("HTTP/1.1 413"));
}

TEST(HttpLimits, TellsWhoSendsTooMuchBeforeItCloses) {
  HttpServerOptions options = local_options();
  options.max_body_bytes = 1000;
  const HttpServer server(options, echo);
  RawSocket socket(server.port());
  // Far more than the socket's buffers: closing at once would reset the connection.
  socket.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000000\r\n\r\n");
  socket.send(std::string(30'000'000, 'x'));
  const std::string answer = socket.read_answer();
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("Connection: close")));
  EXPECT_THAT(answer,
              EndsWith("{\"error\":{\"message\":\"the body has more than 1000 bytes\",\"type\":"
                       "\"invalid_request_error\",\"param\":null,\"code\":null}}"));
}

TEST(HttpLimits, ReadsNoBodyThatNobodyLooksAt) {
  const HttpServer server(local_options(), echo, {},
                          [](const HttpRequest& head) { return head.path == "/read"; });
  const auto request = [](const std::string& path) {
    return "POST " + path +
           " HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
  };
  RawSocket socket(server.port());
  socket.send(request("/read"));
  EXPECT_EQ(socket.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.send("abc" + request("/other"));
  EXPECT_THAT(socket.read_answer(), EndsWith("POST /read [] abc"));
  EXPECT_THAT(socket.read_to_end(),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\r\nConnection: close\r\n"),
                    EndsWith("POST /other [] ")));
}

TEST(HttpLimits, HoldsNoMoreBodiesThanMayBe) {
  HttpServerOptions options = local_options();
  options.max_body_bytes = options.max_held_bytes = 1000;
  ExchangeQueue queue;
  const HttpServer server(options, queue.handler());
  const std::string request =
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\n\r\n" + std::string(600, 'x');
  RawSocket first(server.port()), second(server.port());
  first.send(request);
  const auto held = queue.next();
  EXPECT_THAT(ask(server.port(), request),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("\r\nRetry-After: 1\r\n"),
                    HasSubstr("too many large requests")));
  EXPECT_EQ(held->take_body(), std::string(600, 'x'));
  EXPECT_EQ(held->request().body, "");
  second.send(request);
  queue.next()->respond(plain("in time"));
  EXPECT_THAT(second.read_answer(), EndsWith("in time"));
}

TEST(HttpLimits, RefusesAFloodOfHeaders) {
  const HttpServer server(local_options(), echo);
  std::string flood = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 100'000; ++i) flood += "X-A: b\r\n";
  RawSocket socket(server.port());
  socket.send(flood);
  EXPECT_THAT(socket.read_answer(), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask(server.port(), "GET /" + std::string(100'000, 'a')), StartsWith("HTTP/1.1 431"));
}

TEST(HttpLimits, GivesUpABodyThatComesTooSlowly) {
  HttpServerOptions options = local_options();
  options.body_timeout = milliseconds(30);
  const HttpServer server(options, echo);
  EXPECT_THAT(ask(server.port(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123"),
              StartsWith("HTTP/1.1 408"));
}

TEST(HttpLimits, GivesUpHeadersThatComeTooSlowly) {
  HttpServerOptions options = local_options();
  options.header_timeout = milliseconds(30);
  const HttpServer server(options, echo);
  std::string answer;
  while (answer.empty())
    answer = ask(server.port(), "GET / HT");  // Nothing: even the first byte was late.
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 408"));
  RawSocket silent(server.port());
  EXPECT_EQ(silent.read_to_end(), "");
}

TEST(HttpLimits, ClosesAnIdleConnection) {
  HttpServerOptions options = local_options();
  options.idle_timeout = milliseconds(30);
  const HttpServer server(options, echo);
  RawSocket socket(server.port());
  socket.send(get_request("/"));
  EXPECT_THAT(socket.read_to_end(), EndsWith("GET / [] "));
}

TEST(HttpLimits, TellsConnectionsBeyondTheLimitToComeBack) {
  HttpServerOptions options = local_options();
  options.max_connections = 2;
  const HttpServer server(options, echo);
  RawSocket first(server.port());
  auto second = std::make_unique<RawSocket>(server.port());
  for (RawSocket* socket : {&first, second.get()}) {
    socket->send(get_request("/"));
    EXPECT_THAT(socket->read_answer(), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_THAT(ask(server.port(), get_request("/")),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("\r\nRetry-After: 1\r\n")));
  // An orchestrator would take the server for dead, and end what the others wait for.
  for (const char* probe : {"/health/live", "/health", "/metrics"}) {
    EXPECT_THAT(ask(server.port(), get_request(probe)), StartsWith("HTTP/1.1 200")) << probe;
  }
  // Those have little time, and need no body.
  EXPECT_THAT(ask(server.port(), "POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"),
              EndsWith("POST /health [] "));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(ask(server.port(), "GET /health HTTP/1.1\r\n"), StartsWith("HTTP/1.1 408"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, options.header_timeout);
  second.reset();
  while (server.open_connections() > 1) usleep(1000);
  EXPECT_THAT(ask(server.port(), get_request("/")), StartsWith("HTTP/1.1 200"));
}

TEST(HttpLimits, GivesUpAnAnswerThatTakesTooLong) {
  HttpServerOptions options = local_options();
  options.request_timeout = milliseconds(30);
  ExchangeQueue queue;
  const HttpServer server(options, queue.handler());
  RawSocket socket(server.port());
  socket.send(get_request("/1"));
  const auto exchange = queue.next();
  Flag gone;
  exchange->on_gone([&] { gone.raise(); });
  EXPECT_THAT(socket.read_answer(), StartsWith("HTTP/1.1 504"));
  EXPECT_TRUE(gone.wait());
  exchange->respond(plain("too late"));
  socket.send(get_request("/2"));
  queue.next()->respond(plain("in time"));
  EXPECT_THAT(socket.read_answer(), AnyOf(EndsWith("in time"), StartsWith("HTTP/1.1 504")));
}

TEST(HttpLimits, WaitsWhenThereAreNoDescriptorsAndThenGoesOn) {
  std::atomic<int> num_lines = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++num_lines; });
  const HttpServer server(local_options(), echo);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  auto socket = std::make_unique<RawSocket>(server.port());  // Proves that the server accepts.
  socket->send(get_request("/"));
  socket->read_answer();
  const int next_fd = dup(0);
  close(next_fd);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next_fd) + 1;  // One for the client, none for the server.
  setrlimit(RLIMIT_NOFILE, &none);
  RawSocket late(server.port());
  late.send(get_request("/late"));
  socket->send(get_request("/early"));
  // Sanitizers look at addresses through descriptors: what is checked is checked when there are
  // some.
  const std::string early = socket->read_answer();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(early, EndsWith("GET /early [] "));
  EXPECT_THAT(late.read_answer(), EndsWith("GET /late [] "));
  set_log_sink({});
  EXPECT_LE(num_lines, 1);  // However often it was tried.
}

// ---- What is no request ----

TEST(HttpLimits, OutlivesRandomBytes) {
  const HttpServer server(local_options(), echo);
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    std::string bytes(random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (i % 2 == 0) bytes = "POST / HTTP/1.1\r\nHost: a\r\n" + bytes;
    RawSocket socket(server.port());
    socket.send(bytes);
    socket.finish_sending();
    EXPECT_THAT(socket.read_to_end(),
                testing::AnyOf("", StartsWith("HTTP/1.1 4"), StartsWith("HTTP/1.1 5"),
                               StartsWith("HTTP/1.1 200")));
  }
  EXPECT_THAT(ask(server.port(), get_request("/")), StartsWith("HTTP/1.1 200"));
}

TEST(HttpLimits, ClosesAfterARequestThatItCouldNotRead) {
  const HttpServer server(local_options(), echo);
  RawSocket socket(server.port());
  socket.send("NONSENSE\r\n\r\n" + get_request("/"));
  const std::string all = socket.read_to_end();
  EXPECT_THAT(all, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(all, Not(HasSubstr("200 OK")));
}

}  // namespace
}  // namespace trtmc
