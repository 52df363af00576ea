#include "server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <random>

#include "base/log.h"
#include "tests/support/error_of.h"
#include "tests/support/http_peer.h"

namespace trtmc {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Says back what came.
void echo(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  exchange->respond(
      plain(request.method + " " + request.path + " [" + request.query + "] " + request.body));
}

std::string get(std::string_view path, std::string_view more = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(more) + "\r\n";
}

std::string ask(const HttpServer& server, std::string_view bytes) {
  RawSocket socket(server.port());
  socket.send(bytes);
  return socket.read_answer();
}

TEST(HttpServer, AnswersARequestWithWhatTheHandlerSays) {
  const HttpServer server(local_options(), echo);
  const std::string answer = ask(server, get("/a/b?c=d&e"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 17\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nGET /a/b [c=d&e] "));
}

TEST(HttpServer, KeepsAConnectionForTheNextRequest) {
  const HttpServer server(local_options(), echo);
  RawSocket socket(server.port());
  for (const char* path : {"/1", "/2", "/3"}) {
    socket.send(get(path));
    EXPECT_THAT(socket.read_answer(), EndsWith("GET " + std::string(path) + " [] "));
  }
  socket.send(get("/4", "Connection: close\r\n"));
  EXPECT_THAT(socket.read_to_end(),
              AllOf(HasSubstr("\r\nConnection: close\r\n"), EndsWith("/4 [] ")));
}

TEST(HttpServer, AnswersPipelinedRequestsInTheirOrder) {
  ExchangeQueue queue;
  const HttpServer server(local_options(), queue.handler());
  RawSocket socket(server.port());
  socket.send(get("/1") + get("/2") + get("/3"));
  for (const char* path : {"/1", "/2", "/3"}) {
    const auto exchange = queue.next();
    EXPECT_EQ(exchange->request().path, path);
    EXPECT_EQ(queue.size(), 0u);  // The next one waits for this one's answer.
    exchange->respond(plain(path));
    EXPECT_THAT(socket.read_answer(), EndsWith(path));
  }
}

TEST(HttpServer, TakesARequestThatComesInSingleBytes) {
  const HttpServer server(local_options(), echo);
  RawSocket socket(server.port());
  for (const char byte :
       std::string("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz")) {
    socket.send({&byte, 1});
  }
  EXPECT_THAT(socket.read_answer(), EndsWith("POST / [] xyz"));
}

TEST(HttpServer, AnswersHeadWithTheLengthAndWithoutTheBody) {
  const HttpServer server(local_options(),
                          [](auto exchange) { exchange->respond(plain("12345")); });
  RawSocket socket(server.port());
  socket.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + get("/", "Connection: close\r\n"));
  EXPECT_THAT(socket.read_until("\r\n\r\n"), HasSubstr("\r\nContent-Length: 5\r\n"));
  EXPECT_THAT(socket.read_to_end(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(HttpServer, ReadsABodyInChunksWhoseTrailersAreNoHeaders) {
  ExchangeQueue queue;
  const HttpServer server(local_options(), queue.handler());
  RawSocket socket(server.port());
  socket.send(
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nAuthorization: Bearer x\r\n\r\n");
  const auto exchange = queue.next();
  EXPECT_EQ(exchange->request().body, "abcd");
  EXPECT_FALSE(exchange->request().headers.find("Authorization"));
  exchange->respond(plain(""));
}

TEST(HttpServer, SaysContinueToWhoWaitsForIt) {
  const HttpServer server(local_options(), echo);
  RawSocket socket(server.port());
  socket.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(socket.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.send("ok");
  EXPECT_THAT(socket.read_answer(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith(" ok")));
}

TEST(HttpServer, ClosesAfterAnAnswerToHttp10UnlessAskedNotTo) {
  const HttpServer server(local_options(), echo);
  RawSocket socket(server.port());
  socket.send("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(socket.read_answer(), HasSubstr("\r\nConnection: keep-alive\r\n"));
  socket.send("GET /2 HTTP/1.0\r\n\r\n");
  EXPECT_THAT(socket.read_to_end(), EndsWith("GET /2 [] "));
}

TEST(HttpServer, AnswersWhoHasFinishedSending) {
  const HttpServer server(local_options(), echo);
  RawSocket socket(server.port());
  socket.send(get("/1") + get("/2"));
  socket.finish_sending();
  EXPECT_THAT(socket.read_to_end(), AllOf(HasSubstr("GET /1 [] "), EndsWith("GET /2 [] ")));
}

// ---- Limits ----

TEST(HttpServer, RefusesALargeBodyWithoutTakingIt) {
  HttpServerOptions options = local_options();
  options.max_body_bytes = 1000;
  const HttpServer server(options, echo);
  constexpr std::string_view kHead = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string head(kHead);
  EXPECT_THAT(ask(server, head + "Content-Length: 1000\r\n\r\n" + std::string(1000, 'x')),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(server, head + "Content-Length: 1001\r\n\r\n"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(ask(server, head + "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(ask(server, head + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n" +
                              std::string(1000, 'x') + "\r\n1\r\n"),
              StartsWith("HTTP/1.1 413"));
}

TEST(HttpServer, TellsWhoSendsTooMuchBeforeItCloses) {
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

TEST(HttpServer, RefusesAFloodOfHeaders) {
  const HttpServer server(local_options(), echo);
  std::string flood = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 100'000; ++i) flood += "X-A: b\r\n";
  RawSocket socket(server.port());
  socket.send(flood);
  EXPECT_THAT(socket.read_answer(), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask(server, "GET /" + std::string(100'000, 'a')), StartsWith("HTTP/1.1 431"));
}

TEST(HttpServer, GivesUpABodyThatComesTooSlowly) {
  HttpServerOptions options = local_options();
  options.body_timeout = milliseconds(30);
  const HttpServer server(options, echo);
  EXPECT_THAT(ask(server, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123"),
              StartsWith("HTTP/1.1 408"));
}

TEST(HttpServer, GivesUpHeadersThatComeTooSlowly) {
  HttpServerOptions options = local_options();
  options.header_timeout = milliseconds(30);
  const HttpServer server(options, echo);
  std::string answer;
  while (answer.empty())
    answer = ask(server, "GET / HT");  // Nothing: even the first byte was late.
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 408"));
  RawSocket silent(server.port());
  EXPECT_EQ(silent.read_to_end(), "");
}

TEST(HttpServer, ClosesAnIdleConnection) {
  HttpServerOptions options = local_options();
  options.idle_timeout = milliseconds(30);
  const HttpServer server(options, echo);
  RawSocket socket(server.port());
  socket.send(get("/"));
  EXPECT_THAT(socket.read_to_end(), EndsWith("GET / [] "));
}

TEST(HttpServer, TellsConnectionsBeyondTheLimitToComeBack) {
  HttpServerOptions options = local_options();
  options.max_connections = 2;
  const HttpServer server(options, echo);
  RawSocket first(server.port());
  auto second = std::make_unique<RawSocket>(server.port());
  for (RawSocket* socket : {&first, second.get()}) {
    socket->send(get("/"));
    EXPECT_THAT(socket->read_answer(), StartsWith("HTTP/1.1 200"));
  }
  RawSocket third(server.port());
  EXPECT_THAT(third.read_to_end(),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("\r\nRetry-After: 1\r\n")));
  third.close();
  second.reset();
  while (server.open_connections() > 1) usleep(1000);
  EXPECT_THAT(ask(server, get("/")), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, GivesUpAnAnswerThatTakesTooLong) {
  HttpServerOptions options = local_options();
  options.request_timeout = milliseconds(30);
  ExchangeQueue queue;
  const HttpServer server(options, queue.handler());
  RawSocket socket(server.port());
  socket.send(get("/1"));
  const auto exchange = queue.next();
  Flag gone;
  exchange->on_gone([&] { gone.raise(); });
  EXPECT_THAT(socket.read_answer(), StartsWith("HTTP/1.1 504"));
  EXPECT_TRUE(gone.wait());
  exchange->respond(plain("too late"));
  socket.send(get("/2"));
  queue.next()->respond(plain("in time"));
  EXPECT_THAT(socket.read_answer(), AnyOf(EndsWith("in time"), StartsWith("HTTP/1.1 504")));
}

TEST(HttpServer, WaitsWhenThereAreNoDescriptorsAndThenGoesOn) {
  std::atomic<int> num_lines = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++num_lines; });
  const HttpServer server(local_options(), echo);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  auto socket = std::make_unique<RawSocket>(server.port());  // Proves that the server accepts.
  socket->send(get("/"));
  socket->read_answer();
  const int next_fd = dup(0);
  close(next_fd);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next_fd) + 1;  // One for the client, none for the server.
  setrlimit(RLIMIT_NOFILE, &none);
  RawSocket late(server.port());
  late.send(get("/late"));
  socket->send(get("/early"));
  EXPECT_THAT(socket->read_answer(), EndsWith("GET /early [] "));
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(late.read_answer(), EndsWith("GET /late [] "));
  set_log_sink({});
  EXPECT_LE(num_lines, 1);  // However often it was tried.
}

// ---- What is no request ----

TEST(HttpServer, OutlivesRandomBytes) {
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
  EXPECT_THAT(ask(server, get("/")), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, ClosesAfterARequestThatItCouldNotRead) {
  const HttpServer server(local_options(), echo);
  RawSocket socket(server.port());
  socket.send("NONSENSE\r\n\r\n" + get("/"));
  const std::string all = socket.read_to_end();
  EXPECT_THAT(all, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(all, Not(HasSubstr("200 OK")));
}

// ---- Ids, origins ----

TEST(HttpServer, KeepsTheClientsRequestIdIfItIsOne) {
  const HttpServer server(local_options(), [](const auto& exchange) {
    exchange->respond(plain(exchange->request().id));
  });
  const std::string kept = ask(server, get("/", "X-Request-Id: a-B_9\r\n"));
  EXPECT_THAT(kept, AllOf(HasSubstr("\r\nX-Request-Id: a-B_9\r\n"), EndsWith("\r\n\r\na-B_9")));
  const std::string made = ask(server, get("/", "X-Request-Id: a b\"\r\n"));
  EXPECT_THAT(made, HasSubstr("\r\nX-Request-Id: req-"));
  const std::string other = ask(server, get("/"));
  EXPECT_NE(made.substr(made.size() - 32), other.substr(other.size() - 32));
}

TEST(HttpServer, SaysNothingOfOriginsUnlessToldTo) {
  const HttpServer server(local_options(), echo);
  EXPECT_THAT(ask(server, get("/", "Origin: https://a.example\r\n")),
              Not(HasSubstr("Access-Control")));
}

TEST(HttpServer, LetsThePagesOfListedOriginsAsk) {
  HttpServerOptions options = local_options();
  options.cors_origins = {"https://a.example"};
  const HttpServer server(options, echo);
  EXPECT_THAT(ask(server, get("/", "Origin: https://a.example\r\n")),
              HasSubstr("\r\nAccess-Control-Allow-Origin: https://a.example\r\n"));
  EXPECT_THAT(ask(server, get("/", "Origin: https://b.example\r\n")),
              AllOf(Not(HasSubstr("Access-Control")), HasSubstr("\r\nVary: Origin\r\n")));
  const std::string preflight =
      ask(server,
          "OPTIONS /v1/x HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n"
          "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: "
          "authorization,content-type\r\n\r\n");
  EXPECT_THAT(preflight, StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_THAT(preflight,
              HasSubstr("\r\nAccess-Control-Allow-Headers: authorization,content-type\r\n"));
  EXPECT_THAT(preflight, Not(HasSubstr("Content-Length")));
}

// ---- Start and end ----

TEST(HttpServer, SaysWhyItCannotListen) {
  const HttpServer server(local_options(), echo);
  HttpServerOptions options = local_options();
  options.port = server.port();
  const Error taken = error_of([&] { HttpServer(options, echo); });
  EXPECT_EQ(taken.code(), ErrorCode::kExhausted);
  EXPECT_EQ(taken.what(), "127.0.0.1:" + std::to_string(server.port()) + ": the port is taken");
  options.host = "no such host";
  EXPECT_STREQ(error_of([&] { HttpServer(options, echo); }).what(),
               "\"no such host\" is no address or name of this machine");
  options.host = "192.0.2.1";  // RFC 5737: nobody's.
  EXPECT_THAT(error_of([&] { HttpServer(options, echo); }).what(),
              StartsWith("192.0.2.1:" + std::to_string(server.port()) + ": can't listen there: "));
}

TEST(HttpServer, HasAUrl) {
  const HttpServer server(local_options(), echo);
  EXPECT_EQ(server.url(), "http://127.0.0.1:" + std::to_string(server.port()));
}

TEST(HttpServer, DrainsIdleConnectionsAtOnceAndBusyOnesAfterTheirAnswers) {
  ExchangeQueue queue;
  HttpServer server(local_options(), queue.handler());
  RawSocket idle(server.port()), busy(server.port());
  idle.send(get("/"));
  queue.next()->respond(plain("idle"));
  EXPECT_THAT(idle.read_answer(), EndsWith("idle"));
  busy.send(get("/1") + get("/2"));
  const auto exchange = queue.next();

  server.drain();
  EXPECT_EQ(idle.read_to_end(), "");
  idle.close();
  EXPECT_THROW(RawSocket(server.port()), std::runtime_error);
  EXPECT_FALSE(server.await_drained(std::chrono::steady_clock::now()));
  exchange->respond(plain("busy"));
  EXPECT_THAT(busy.read_to_end(), AllOf(HasSubstr("Connection: close"), EndsWith("busy")));
  busy.close();
  EXPECT_TRUE(server.await_drained(std::chrono::steady_clock::now() + std::chrono::seconds(30)));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(HttpServer, EndsWhileRequestsRunWhoseExchangesOutliveIt) {
  ExchangeQueue queue;
  ServedQueue served;
  auto server = std::make_unique<HttpServer>(local_options(), queue.handler(), served.log());
  RawSocket socket(server->port());
  socket.send(get("/"));
  auto exchange = queue.next();
  Flag gone;
  exchange->on_gone([&] { gone.raise(); });
  server.reset();
  EXPECT_TRUE(gone.is_raised());
  exchange->start_stream(plain("late"));
  exchange->write("later");
  exchange.reset();
  EXPECT_FALSE(served.next().complete);
  EXPECT_EQ(socket.read_to_end(), "");
}

TEST(HttpServer, LogsWhatIsKnownOfEachRequest) {
  ServedQueue served;
  const HttpServer server(
      local_options(),
      [](const auto& exchange) {
        exchange->note_model("smol");
        exchange->note_tokens(3, 4);
        exchange->respond(text_response(404, "text/plain", "none"));
      },
      served.log());
  const std::string answer = ask(server, get("/x?secret", "X-Request-Id: abc\r\n"));
  const ServedRequest request = served.next();
  EXPECT_EQ(request.id + request.method + request.path + request.client, "abcGET/x127.0.0.1");
  EXPECT_EQ(request.status, 404);
  EXPECT_EQ(request.bytes, answer.size());
  EXPECT_TRUE(request.complete);
  EXPECT_EQ(request.model, "smol");
  EXPECT_EQ(request.prompt_tokens, 3);
  EXPECT_EQ(request.completion_tokens, 4);
}

}  // namespace
}  // namespace trtmc
