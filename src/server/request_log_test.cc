#include "server/request_log.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace trtmc {
namespace {

ServedRequest example() {
  ServedRequest request;
  request.start = std::chrono::system_clock::time_point(std::chrono::milliseconds(1769860800123));
  request.duration_ms = 56.74;
  request.id = "req-1";
  request.client = "127.0.0.1";
  request.method = "POST";
  request.path = "/v1/completions";
  request.status = 200;
  request.bytes = 1234;
  request.complete = true;
  request.model = "smollm3";
  request.prompt_tokens = 12;
  request.completion_tokens = 34;
  return request;
}

TEST(RequestLog, IsALineOfWords) {
  EXPECT_EQ(
      request_line(example(), RequestLogFormat::kText),
      "2026-01-31T12:00:00.123Z 127.0.0.1 POST /v1/completions 200 1234B 56.7ms smollm3 12+34 "
      "req-1");
}

TEST(RequestLog, SaysWhatIsNotKnownAndWhatWasCut) {
  ServedRequest request;
  request.bytes = 5;
  EXPECT_EQ(request_line(request, RequestLogFormat::kText),
            "1970-01-01T00:00:00.000Z - - - 0 5B cut 0.0ms - - -");
}

TEST(RequestLog, LetsAClientForgeNothing) {
  ServedRequest request = example();
  request.path = "/a b\n\xff";
  request.model = "x 1+1\x1b[2J";
  EXPECT_EQ(request_line(request, RequestLogFormat::kText),
            "2026-01-31T12:00:00.123Z 127.0.0.1 POST /a%20b%0A%FF 200 1234B 56.7ms x%201+1%1B[2J "
            "12+34 req-1");
}

TEST(RequestLog, IsALineOfJson) {
  EXPECT_EQ(request_line(example(), RequestLogFormat::kJson),
            R"({"time":"2026-01-31T12:00:00.123Z","id":"req-1","client":"127.0.0.1",)"
            R"("method":"POST","path":"/v1/completions","status":200,"bytes":1234,)"
            R"("duration_ms":56.74,"complete":true,"model":"smollm3","prompt_tokens":12,)"
            R"("completion_tokens":34})");
  ServedRequest request = example();
  request.path = "/\"\xff";
  request.model = "\xff";
  const Json json = Json::parse(request_line(request, RequestLogFormat::kJson));
  EXPECT_EQ(*json.find("path"), Json("/\"%FF"));
  EXPECT_EQ(*json.find("model"), Json("\xef\xbf\xbd"));
}

}  // namespace
}  // namespace trtmc
