#include "hub/curl_transport.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "hub/http_headers.h"

namespace trtmc {
namespace {

constexpr long kConnectTimeoutS = 15;
constexpr long kStallBytesPerS = 1024;
constexpr size_t kMaxHeaderBytes = 256 << 10;  // Of all headers of one response.
constexpr long kBufferBytes = 256 << 10;

// What one exchange's callbacks work on.
struct Exchange {
  const BodySink& sink;
  const std::stop_token& stop;
  FetchResponse response;
  size_t header_bytes = 0;
  bool sink_has_enough = false;
  std::exception_ptr thrown = {};  // By the sink: libcurl is C, and no exception may cross it.
};

size_t on_header(char* data, size_t size, size_t count, void* context) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  const size_t bytes = size * count;
  exchange.header_bytes += bytes;
  if (exchange.header_bytes > kMaxHeaderBytes) return 0;
  read_header_line({data, bytes}, exchange.response);
  return bytes;
}

size_t on_body(char* data, size_t size, size_t count, void* context) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  const std::span<const char> bytes(data, size * count);
  try {
    if (exchange.sink(exchange.response, std::as_bytes(bytes))) return bytes.size();
    exchange.sink_has_enough = true;
  } catch (...) {
    exchange.thrown = std::current_exception();
  }
  return 0;
}

int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(context)->stop.stop_requested() ? 1 : 0;
}

bool is_unreachable(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
         code == CURLE_COULDNT_CONNECT;
}

std::string failure_reason(CURLcode code, const char* detail) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return "the name is not known (is there a network?)";
    case CURLE_COULDNT_CONNECT:
      return "no connection";
    case CURLE_OPERATION_TIMEDOUT:
      return "no answer in time";
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
      return "the connection was cut";
    default:
      return detail[0] != '\0' ? detail : curl_easy_strerror(code);
  }
}

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] {
    TRTMC_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl starts");
    // A connection that the server has closed is an error, not the end of the program: TLS
    // libraries write without MSG_NOSIGNAL.
    std::signal(SIGPIPE, SIG_IGN);
  });
}

class CurlTransport : public Transport {
 public:
  explicit CurlTransport(long stall_timeout_s)
      : stall_timeout_s_(stall_timeout_s), curl_(curl_easy_init(), &curl_easy_cleanup) {
    if (!curl_) throw Error(ErrorCode::kExhausted, "no memory for a connection");
  }

  FetchResponse get(const FetchRequest& request, const BodySink& sink,
                    const std::stop_token& stop) override {
    Exchange exchange{sink, stop, {}};
    char detail[CURL_ERROR_SIZE] = "";
    configure(request, exchange, detail);
    const CURLcode code = curl_easy_perform(curl_.get());
    if (exchange.thrown) std::rethrow_exception(exchange.thrown);
    if (exchange.header_bytes > kMaxHeaderBytes) {
      throw TransientFailure{fmt::format("more than {} bytes of headers", kMaxHeaderBytes)};
    }
    if (code != CURLE_OK && !exchange.sink_has_enough) {
      throw TransientFailure{failure_reason(code, detail), 0, is_unreachable(code)};
    }
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RETRY_AFTER, &retry_after_s);
    exchange.response.retry_after_s =
        static_cast<int>(std::min<curl_off_t>(retry_after_s, 1 << 30));
    return std::move(exchange.response);
  }

 private:
  // Connections stay open from one exchange to the next; everything else is set anew.
  void configure(const FetchRequest& request, Exchange& exchange, char* detail) {
    CURL* const curl = curl_.get();
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "trtmc");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectTimeoutS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, stall_timeout_s_);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kBufferBytes);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
    if (request.first) {
      const std::string last = request.last ? std::to_string(*request.last) : "";
      const std::string range = fmt::format("{}-{}", *request.first, last);
      curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());  // libcurl copies it.
    }
    if (!request.token.empty()) {
      curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, request.token.c_str());
    }
  }

  long stall_timeout_s_;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_;
};

}  // namespace

TransportFactory curl_transport_factory(int stall_timeout_s) {
  start_curl();
  return [stall_timeout_s] { return std::make_unique<CurlTransport>(stall_timeout_s); };
}

}  // namespace trtmc
