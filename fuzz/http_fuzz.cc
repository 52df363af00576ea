// What comes in at a server's socket: however the bytes are cut into pieces, they are the same
// requests and the same refusal, and a line of the log stays a line.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/http_head.h"
#include "server/http_request_parser.h"
#include "server/request_log.h"

namespace {

using trtmc::HttpRequest;
using trtmc::HttpRequestParser;
using State = HttpRequestParser::State;

constexpr size_t kMaxHeader = 512, kMaxBody = 256;

void check(const HttpRequest& request) {
  if (request.body.size() > kMaxBody || request.path.empty()) std::abort();
  trtmc::ServedRequest served;
  served.complete = true;
  served.method = request.method;
  served.path = request.path;
  const auto id = request.headers.find("X-Request-Id").value_or("");
  if (trtmc::is_request_id(id)) served.id = id;
  const std::string line = trtmc::request_line(served, trtmc::RequestLogFormat::kText);
  if (std::count(line.begin(), line.end(), ' ') != 9) std::abort();
  trtmc::Json::parse(trtmc::request_line(served, trtmc::RequestLogFormat::kJson));
  const auto origin = trtmc::cors_headers({"*"}, request);
  const std::string head = trtmc::http_head({.status = 200, .headers = {}, .body = {}}, {}, origin);
  if (head.find("\r\n\r\n") != head.size() - 4) std::abort();
}

struct Reading {
  std::string requests;  // All that `bytes` has, as text.
  int status = 0;        // Of the refusal at their end; 0: the last one is not complete.
};

// What is in `bytes`, taken in pieces of `step`.
Reading read_all(std::string_view bytes, size_t step) {
  Reading reading;
  std::string& seen = reading.requests;
  std::string waiting;
  HttpRequestParser parser(kMaxHeader, kMaxBody);
  for (;;) {
    const size_t taken = parser.take(waiting);
    if (taken > waiting.size()) std::abort();
    waiting.erase(0, taken);
    if (parser.state() == State::kFailed) {
      reading.status = parser.error().status;
      return reading;
    }
    if (parser.state() == State::kDone) {
      const HttpRequest& request = parser.parsed().request;
      check(request);
      seen += request.method + '\n' + request.path + '\n' + request.query + '\n';
      for (const auto& [name, value] : request.headers) seen += name + ':' + value + '\n';
      seen += request.body + (parser.parsed().keeps_alive ? "\n+" : "\n-");
      parser = HttpRequestParser(kMaxHeader, kMaxBody);
      continue;
    }
    if (taken > 0) continue;
    if (bytes.empty()) return reading;
    waiting += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Reading whole = read_all(bytes, bytes.size());
  const Reading pieces = read_all(bytes, size_t{1} + data[0] % 64);
  if (whole.requests != pieces.requests) std::abort();
  // A head that is refused may be refused before its end or at it.
  if (whole.status != 0 && pieces.status != 0 && whole.status != pieces.status) std::abort();
  return 0;
}
