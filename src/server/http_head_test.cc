#include "server/http_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(HttpHead, HasTheLengthOfAWholeAnswer) {
  const std::string head = http_head(text_response(404, "text/plain", "abc"), {}, {{"A", "b"}});
  EXPECT_THAT(head,
              StartsWith("HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nA: b\r\nDate: "));
  EXPECT_THAT(head, EndsWith(" GMT\r\nContent-Length: 3\r\n\r\n"));
}

TEST(HttpHead, SaysHowAStreamEnds) {
  const HttpResponse response = text_response(200, "text/event-stream", "");
  EXPECT_THAT(http_head(response, {.is_stream = true}, {}),
              EndsWith("\r\nTransfer-Encoding: chunked\r\n\r\n"));
  EXPECT_THAT(
      http_head(response, {.is_http_1_0 = true, .is_stream = true, .keeps_alive = false}, {}),
      EndsWith(" GMT\r\nConnection: close\r\n\r\n"));
}

TEST(HttpHead, HasNoLengthWhereThereCanBeNoBody) {
  EXPECT_THAT(http_head({.status = 204, .headers = {}, .body = {}}, {}, {}),
              Not(HasSubstr("Content-Length")));
}

TEST(HttpHead, LetsNoValueBecomeAHeader) {
  const HttpResponse response{.status = 200, .headers = {{"A", "b\r\nC: d\n\n"}}, .body = {}};
  EXPECT_THAT(http_head(response, {}, {}), HasSubstr("\r\nA: bC: d\r\n"));
}

TEST(HttpHead, GivesTheLengthOfAChunkInHexadecimal) {
  EXPECT_EQ(http_chunk(std::string(26, 'x')), "1a\r\n" + std::string(26, 'x') + "\r\n");
}

TEST(HttpHead, KnowsAForeignPage) {
  const auto is_foreign = [](std::string origin, std::string host) {
    HttpRequest request;
    if (!origin.empty()) request.headers.add("Origin", std::move(origin));
    request.headers.add("Host", std::move(host));
    return is_foreign_page({"https://listed.example"}, "model.lan", request);
  };
  EXPECT_FALSE(is_foreign("", "evil.example:8080"));  // No page.
  EXPECT_FALSE(is_foreign("https://listed.example", "api.example"));
  EXPECT_FALSE(is_foreign("http://127.0.0.1:8080", "127.0.0.1:8080"));
  EXPECT_FALSE(is_foreign("http://[::1]:8080", "[::1]:8080"));
  EXPECT_FALSE(is_foreign("http://localhost", "LOCALHOST"));
  EXPECT_FALSE(is_foreign("http://model.lan:8080", "model.lan:8080"));
  EXPECT_TRUE(is_foreign("http://evil.example:8080", "127.0.0.1:8080"));
  EXPECT_TRUE(is_foreign("http://127.0.0.1:81", "127.0.0.1:80"));
  EXPECT_TRUE(is_foreign("null", "127.0.0.1"));
  // Its owner may have the name lead to 127.0.0.1.
  EXPECT_TRUE(is_foreign("http://evil.example:8080", "evil.example:8080"));
  EXPECT_TRUE(is_foreign("http://1.evil.example", "1.evil.example"));
  EXPECT_TRUE(is_foreign("http://[", "["));
}

TEST(HttpHead, KnowsARequestId) {
  EXPECT_TRUE(is_request_id("req-1.2_3:4/5+6="));
  EXPECT_TRUE(is_request_id(std::string(128, 'a')));
  EXPECT_FALSE(is_request_id(std::string(129, 'a')));
  for (const char* text : {"", "a b", "a\"b", "a\nb", "\xc3\xa9"})
    EXPECT_FALSE(is_request_id(text));
}

}  // namespace
}  // namespace trtmc
