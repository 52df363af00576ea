#include "server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/http_peer.h"

namespace trtmc {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(HttpServer, AnswersARequestWithWhatTheHandlerSays) {
  const HttpServer server(local_options(), echo);
  const std::string answer = ask(server.port(), get_request("/a/b?c=d&e"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 17\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nGET /a/b [c=d&e] "));
}

TEST(HttpServer, KeepsAConnectionForTheNextRequest) {
  const HttpServer server(local_options(), echo);
  RawSocket socket(server.port());
  for (const char* path : {"/1", "/2", "/3"}) {
    socket.send(get_request(path));
    EXPECT_THAT(socket.read_answer(), EndsWith("GET " + std::string(path) + " [] "));
  }
  socket.send(get_request("/4", "Connection: close\r\n"));
  EXPECT_THAT(socket.read_to_end(),
              AllOf(HasSubstr("\r\nConnection: close\r\n"), EndsWith("/4 [] ")));
}

TEST(HttpServer, AnswersPipelinedRequestsInTheirOrder) {
  ExchangeQueue queue;
  const HttpServer server(local_options(), queue.handler());
  RawSocket socket(server.port());
  socket.send(get_request("/1") + get_request("/2") + get_request("/3"));
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
  socket.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + get_request("/", "Connection: close\r\n"));
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
  socket.send(get_request("/1") + get_request("/2"));
  socket.finish_sending();
  EXPECT_THAT(socket.read_to_end(), AllOf(HasSubstr("GET /1 [] "), EndsWith("GET /2 [] ")));
}

// RFC 9110, 15.2: a client must take interim answers that it did not wait for.
TEST(HttpServer, AnswersWhoHasFinishedSendingLongBefore) {
  ExchangeQueue queue;
  const HttpServer server(local_options(), queue.handler());
  RawSocket socket(server.port());
  socket.send(get_request("/1") + get_request("/2"));
  const auto exchange = queue.next();
  socket.finish_sending();
  EXPECT_EQ(socket.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  exchange->respond(plain("one"));
  EXPECT_THAT(socket.read_answer(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("one")));
  queue.next()->respond(plain("two"));
  EXPECT_THAT(socket.read_to_end(), EndsWith("two"));
  EXPECT_FALSE(socket.was_reset());
}

TEST(HttpServer, TakesTheEndOfAnOldClientForItsLeave) {
  ExchangeQueue queue;
  const HttpServer server(local_options(), queue.handler());
  RawSocket socket(server.port());
  socket.send("GET / HTTP/1.0\r\n\r\n");
  const auto exchange = queue.next();
  Flag gone;
  exchange->on_gone([&] { gone.raise(); });
  socket.finish_sending();
  EXPECT_TRUE(gone.wait());  // HTTP/1.0 has no interim answers that would find out.
}

// ---- Ids, origins ----

TEST(HttpServer, KeepsTheClientsRequestIdIfItIsOne) {
  const HttpServer server(local_options(), [](const auto& exchange) {
    exchange->respond(plain(exchange->request().id));
  });
  const std::string kept = ask(server.port(), get_request("/", "X-Request-Id: a-B_9\r\n"));
  EXPECT_THAT(kept, AllOf(HasSubstr("\r\nX-Request-Id: a-B_9\r\n"), EndsWith("\r\n\r\na-B_9")));
  const std::string made = ask(server.port(), get_request("/", "X-Request-Id: a b\"\r\n"));
  EXPECT_THAT(made, HasSubstr("\r\nX-Request-Id: req-"));
  const std::string other = ask(server.port(), get_request("/"));
  EXPECT_NE(made.substr(made.size() - 32), other.substr(other.size() - 32));
}

TEST(HttpServer, SaysNothingOfOriginsUnlessToldTo) {
  const HttpServer server(local_options(), echo);
  EXPECT_THAT(ask(server.port(), get_request("/", "Origin: https://a.example\r\n")),
              Not(HasSubstr("Access-Control")));
}

TEST(HttpServer, LetsThePagesOfListedOriginsAsk) {
  HttpServerOptions options = local_options();
  options.cors_origins = {"https://a.example"};
  const HttpServer server(options, echo);
  EXPECT_THAT(ask(server.port(), get_request("/", "Origin: https://a.example\r\n")),
              HasSubstr("\r\nAccess-Control-Allow-Origin: https://a.example\r\n"));
  EXPECT_THAT(ask(server.port(), get_request("/", "Origin: https://b.example\r\n")),
              AllOf(Not(HasSubstr("Access-Control")), HasSubstr("\r\nVary: Origin\r\n")));
  const std::string preflight =
      ask(server.port(),
          "OPTIONS /v1/x HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n"
          "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: "
          "authorization,content-type\r\n\r\n");
  EXPECT_THAT(preflight, StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_THAT(preflight,
              HasSubstr("\r\nAccess-Control-Allow-Headers: authorization,content-type\r\n"));
  EXPECT_THAT(preflight, Not(HasSubstr("Content-Length")));
}

TEST(HttpServer, MayRefuseThePagesOfOthers) {
  HttpServerOptions options = local_options();
  options.refuses_foreign_pages = true;
  options.cors_origins = {"https://a.example"};
  const HttpServer server(options, echo);
  const auto post = [&](const std::string& headers) {
    return ask(server.port(), "POST / HTTP/1.1\r\nHost: localhost:80\r\n" + headers +
                                  "Content-Length: 0\r\nConnection: close\r\n\r\n");
  };
  EXPECT_THAT(post(""), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(post("Origin: https://a.example\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(post("Origin: http://localhost:80\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(post("Origin: http://b.example\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(post("Origin: null\r\n"), StartsWith("HTTP/1.1 403"));
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
  idle.send(get_request("/"));
  queue.next()->respond(plain("idle"));
  EXPECT_THAT(idle.read_answer(), EndsWith("idle"));
  busy.send(get_request("/1") + get_request("/2"));
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
  socket.send(get_request("/"));
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
  const std::string answer = ask(server.port(), get_request("/x?secret", "X-Request-Id: abc\r\n"));
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
