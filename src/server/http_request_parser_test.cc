#include "server/http_request_parser.h"

#include <gtest/gtest.h>

#include <string>

namespace trtmc {
namespace {

using State = HttpRequestParser::State;

constexpr size_t kMaxHeader = 1000, kMaxBody = 100;

// All of `bytes`, in pieces of `step`. Returns what was left.
std::string feed(HttpRequestParser& parser, std::string bytes, size_t step = std::string::npos) {
  std::string waiting;
  while (parser.state() != State::kDone && parser.state() != State::kFailed) {
    const size_t taken = parser.take(waiting);
    waiting.erase(0, taken);
    if (taken > 0) continue;
    if (bytes.empty()) break;
    waiting += bytes.substr(0, step);
    bytes.erase(0, step);
  }
  return waiting + bytes;
}

int status_of(const std::string& bytes) {
  HttpRequestParser parser(kMaxHeader, kMaxBody);
  feed(parser, bytes);
  return parser.state() == State::kFailed ? parser.error().status : 0;
}

TEST(HttpRequestParser, ReadsTheSameRequestHoweverItIsCut) {
  const std::string bytes =
      "\r\n\r\nPOST /a%2Fb?c=d HTTP/1.1\r\nHost: x\r\nX-Y:  z \r\nTransfer-Encoding: "
      "chunked\r\n\r\n"
      "5\r\n12345\r\n3;a=b\r\n678\r\n0\r\nT: u\r\n\r\nGET";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    HttpRequestParser parser(kMaxHeader, kMaxBody);
    const std::string rest = feed(parser, bytes, step);
    ASSERT_EQ(parser.state(), State::kDone) << step;
    EXPECT_EQ(rest, "GET");
    const HttpRequest& request = parser.parsed().request;
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/a%2Fb");
    EXPECT_EQ(request.query, "c=d");
    EXPECT_EQ(request.headers.find("x-y"), "z");
    EXPECT_EQ(request.headers.find("T"), std::nullopt);
    EXPECT_EQ(request.body, "12345678");
    EXPECT_TRUE(parser.parsed().keeps_alive);
  }
}

TEST(HttpRequestParser, ReadsABodyOfNoChunksHoweverItIsCut) {
  const std::string bytes =
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    HttpRequestParser parser(kMaxHeader, kMaxBody);
    EXPECT_EQ(feed(parser, bytes, step), "");
    EXPECT_EQ(parser.state(), State::kDone) << step;
  }
}

// RFC 9112, 7.1: last-chunk = 1*("0") [ chunk-ext ] CRLF.
TEST(HttpRequestParser, MayBeGivenTheSameBytesAgain) {
  for (const std::string last : {"0\r\n", "00\r\n", "0;a\r\n", "000\r\n"}) {
    HttpRequestParser parser(kMaxHeader, kMaxBody);
    feed(parser, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(parser.take(last), 0u);
    EXPECT_EQ(parser.take(last + "\r"), 0u);
    EXPECT_EQ(parser.take(last + "\r\n"), last.size() + 2);
    EXPECT_EQ(parser.state(), State::kDone) << last;
  }
}

TEST(HttpRequestParser, StopsBetweenHeadersAndBody) {
  HttpRequestParser parser(kMaxHeader, kMaxBody);
  const std::string head =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
  EXPECT_EQ(parser.take(head + "abc"), head.size());
  EXPECT_EQ(parser.state(), State::kBody);
  EXPECT_TRUE(parser.parsed().expects_continue);
  EXPECT_EQ(parser.take("abcd"), 3u);
  EXPECT_EQ(parser.state(), State::kDone);
  EXPECT_EQ(parser.parsed().request.body, "abc");
}

TEST(HttpRequestParser, TakesTheTargetOfAProxyApart) {
  HttpRequestParser parser(kMaxHeader, kMaxBody);
  feed(parser, "GET http://host:1/p?q HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(parser.parsed().request.path, "/p");
  EXPECT_EQ(parser.parsed().request.query, "q");
  HttpRequestParser bare(kMaxHeader, kMaxBody);
  feed(bare, "GET http://host HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(bare.parsed().request.path, "/");
}

TEST(HttpRequestParser, KnowsWhetherTheConnectionGoesOn) {
  const auto goes_on = [](const std::string& bytes) {
    HttpRequestParser parser(kMaxHeader, kMaxBody);
    feed(parser, bytes);
    EXPECT_EQ(parser.state(), State::kDone) << bytes;
    return parser.parsed().keeps_alive;
  };
  EXPECT_TRUE(goes_on("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_FALSE(goes_on("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_FALSE(goes_on("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(goes_on("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

// RFC 9112: what a server must or should refuse, and what two readers could read in two ways.
TEST(HttpRequestParser, RefusesWhatIsNotOneRequestToEveryReader) {
  const auto headers = [](const std::string& lines) {
    return "POST / HTTP/1.1\r\nHost: x\r\n" + lines + "\r\n";
  };
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);                        // No Host.
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);  // Two.
  EXPECT_EQ(status_of(headers("Authorization: Bearer a\r\nauthorization: Bearer b\r\n")), 400);
  EXPECT_EQ(status_of(headers("X-Api-Key: a\r\nX-API-Key: a\r\n")), 400);
  EXPECT_EQ(status_of(headers("Content-Length: 3\r\nContent-Length: 4\r\n")), 400);
  EXPECT_EQ(status_of(headers("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(status_of(headers("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n")), 400);
  EXPECT_EQ(status_of(headers("Content-Length: -1\r\n")), 400);
  EXPECT_EQ(status_of(headers("Content-Length: 0x3\r\n")), 400);
  EXPECT_EQ(status_of(headers("Content-Length: 99999999999999999999999\r\n")), 400);
  EXPECT_EQ(status_of(headers("Transfer-Encoding: gzip\r\n")), 501);
  EXPECT_EQ(status_of(headers("Transfer-Encoding: gzip, chunked\r\n")), 501);
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(status_of(headers("Expect: magic\r\n")), 417);
  EXPECT_EQ(status_of(headers("Content-Encoding: gzip\r\n")), 415);
  EXPECT_EQ(status_of(headers("Name : x\r\n")), 400);
  EXPECT_EQ(status_of(headers("A: b\n")), 400);  // A bare LF.
  EXPECT_EQ(status_of(headers(std::string("A: b\0c\r\n", 8))), 400);
  EXPECT_EQ(status_of(headers("no colon\r\n")), 400);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET /\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET x HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("CONNECT host:1 HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("\x16\x03\x01\x02\x00\x01\x00\x01"), 400);  // A client that speaks TLS.
  EXPECT_EQ(status_of(headers("Transfer-Encoding: chunked\r\n") + "zz\r\n"), 400);
  EXPECT_EQ(status_of(headers("Transfer-Encoding: chunked\r\n") + "2\r\nabc\r\n0\r\n\r\n"), 400);
}

TEST(HttpRequestParser, HasLimits) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(status_of(head + "Content-Length: 100\r\n\r\n"), 0);
  EXPECT_EQ(status_of(head + "Content-Length: 101\r\n\r\n"), 413);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n65\r\n"), 413);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n64\r\n" + std::string(100, 'x') +
                      "\r\n1\r\n"),
            413);
  EXPECT_EQ(status_of("GET /" + std::string(kMaxHeader, 'x')), 431);
  EXPECT_EQ(status_of(head + "A: " + std::string(kMaxHeader, 'x')), 431);
}

TEST(HttpRequestParser, IsToldToGiveUpWhatNeverEnds) {
  HttpRequestParser parser(kMaxHeader, kMaxBody);
  const std::string endless(parser.longest_element(), 'x');
  const std::string rest =
      feed(parser, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;" + endless);
  EXPECT_EQ(parser.state(), State::kBody);
  EXPECT_GE(rest.size(), parser.longest_element());
  parser.give_up();
  EXPECT_EQ(parser.error().status, 400);
}

}  // namespace
}  // namespace trtmc
