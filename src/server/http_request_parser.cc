#include "server/http_request_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <string>
#include <utility>

#include "base/ascii.h"
#include "server/http_head.h"

namespace trtmc {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

constexpr size_t kLongestChunkHead = 4096;  // With its extensions.
// Two readers could take another one each.
constexpr const char* kSingleFields[] = {"Host", "Authorization", "X-Api-Key"};

std::string_view view(string_view text) { return {text.data(), text.size()}; }

ApiError refusal(int status, std::string message) {
  return {.status = status, .message = std::move(message), .type = "invalid_request_error"};
}

// What Beast calls its errors says little to a client.
std::string sentence(error_code failure) {
  using http::error;
  if (failure == error::bad_line_ending) return "a line does not end with CR LF";
  if (failure == error::bad_method) return "the request line has no method";
  if (failure == error::bad_target) return "the request line has no path that is one";
  if (failure == error::bad_field) return "a header has no name that is one";
  if (failure == error::bad_value) return "a header has a value with forbidden bytes";
  if (failure == error::bad_content_length) return "Content-Length is no number";
  if (failure == error::bad_transfer_encoding || failure == error::multiple_content_length) {
    return "Content-Length and Transfer-Encoding contradict each other";
  }
  if (failure == error::bad_chunk || failure == error::bad_chunk_extension) {
    return "the body is not in the chunks that Transfer-Encoding promises";
  }
  return "the request is not HTTP";
}

}  // namespace

struct HttpRequestParser::Impl final : http::basic_parser<true> {
  Impl(size_t max_header, size_t max_body)
      : max_header_bytes(max_header), max_body_bytes(max_body) {
    header_limit(static_cast<uint32_t>(max_header));
    body_limit(max_body);
  }

  void on_request_impl(http::verb, string_view method, string_view target, int version,
                       error_code&) override {
    parsed.request.method = view(method);
    parsed.is_http_1_0 = version == 10;
    take_target(view(target));
  }

  // "/path?query", also as the "http://host/path" that proxies get.
  void take_target(std::string_view target) {
    for (const std::string_view scheme : {"http://", "https://"}) {
      if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
      const size_t path = target.find_first_of("/?", scheme.size());
      target = path == target.npos ? std::string_view("/") : target.substr(path);
      break;
    }
    const size_t question = target.find('?');
    parsed.request.path = target.substr(0, question);
    if (parsed.request.path.empty()) parsed.request.path = "/";
    if (question != target.npos) parsed.request.query = target.substr(question + 1);
  }

  void on_field_impl(http::field, string_view name, string_view value, error_code&) override {
    // Trailers of a body in chunks could pass for headers that nobody has checked.
    if (state == State::kHead) parsed.request.headers.add(std::string(name), std::string(value));
  }

  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(string_view bytes, error_code&) override {
    parsed.request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(uint64_t, string_view, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, string_view bytes, error_code& failure) override {
    return on_body_impl(bytes, failure);
  }
  void on_finish_impl(error_code&) override {}
  void on_response_impl(int, string_view, int, error_code&) override {}

  void fail(ApiError why) {
    state = State::kFailed;
    error = std::move(why);
  }

  void fail_too_long() {
    fail(refusal(431, fmt::format("the headers have more than {} bytes", max_header_bytes)));
  }

  void fail(error_code failure) {
    if (failure == http::error::header_limit) return fail_too_long();
    if (failure == http::error::body_limit) {
      return fail(refusal(413, fmt::format("the body has more than {} bytes", max_body_bytes)));
    }
    if (failure == http::error::bad_version) {
      return fail(refusal(505, "the request is not HTTP/1.1 or HTTP/1.0"));
    }
    fail(refusal(400, sentence(failure)));
  }

  // What Beast lets pass.
  void check_head() {
    const HttpRequest& request = parsed.request;
    for (const char* const name : kSingleFields) {
      const auto has_name = [&](const auto& field) {
        return equal_ignoring_case(field.first, name);
      };
      if (std::count_if(request.headers.begin(), request.headers.end(), has_name) > 1) {
        return fail(refusal(400, fmt::format("the request has more than one {} header", name)));
      }
    }
    for (const auto& [name, value] : request.headers) {
      if (equal_ignoring_case(name, "Transfer-Encoding") &&
          !equal_ignoring_case(value, "chunked")) {
        return fail(refusal(501, "Transfer-Encoding may be nothing but chunked"));
      }
      if (equal_ignoring_case(name, "Transfer-Encoding") && parsed.is_http_1_0) {
        return fail(refusal(400, "HTTP/1.0 has no Transfer-Encoding"));
      }
      if (equal_ignoring_case(name, "Content-Encoding") &&
          !equal_ignoring_case(value, "identity")) {
        return fail(refusal(415, "Content-Encoding may be nothing but identity"));
      }
      if (equal_ignoring_case(name, "Expect") && !equal_ignoring_case(value, "100-continue")) {
        return fail(refusal(417, "Expect may be nothing but 100-continue"));
      }
    }
    if (!request.headers.find("Host") && !parsed.is_http_1_0) {
      return fail(refusal(400, "the request needs one Host header"));
    }
    const bool is_path = request.path.starts_with('/') &&
                         std::all_of(request.path.begin(), request.path.end(),
                                     [](char byte) { return byte > ' ' && byte < '\x7f'; });
    if (!is_path && request.path != "*") {
      return fail(refusal(400, "the request line has no path that is one"));
    }
    parsed.keeps_alive = keep_alive();
    parsed.expects_continue = !parsed.is_http_1_0 && request.headers.find("Expect").has_value();
    state = is_done() ? State::kDone : State::kBody;
  }

  // Beast asserts that a chunk's head which it has seen without its end comes again with more, and
  // the shortest last chunk as a whole.
  bool is_too_early(std::string_view bytes) const {
    if (state != State::kBody || !chunked()) return false;
    return bytes.size() <= refused_bytes ||
           (bytes.starts_with("0\r\n") && bytes.size() < kLastHttpChunk.size());
  }

  size_t put_some(std::string_view bytes) {
    if (is_too_early(bytes)) return 0;
    eager(state == State::kBody);
    error_code failure;
    const size_t taken = put(boost::asio::const_buffer(bytes.data(), bytes.size()), failure);
    refused_bytes = taken == 0 ? bytes.size() : 0;
    if (failure == http::error::need_more) return taken;
    if (failure) {
      fail(failure);
    } else if (state == State::kHead) {
      if (is_header_done()) check_head();
    } else if (is_done()) {
      state = State::kDone;
    }
    return taken;
  }

  const size_t max_header_bytes;
  const size_t max_body_bytes;
  State state = State::kHead;
  size_t refused_bytes = 0;  // So many were too few to take any of them.
  ParsedRequest parsed;
  ApiError error;
};

HttpRequestParser::HttpRequestParser(size_t max_header_bytes, size_t max_body_bytes)
    : impl_(std::make_unique<Impl>(max_header_bytes, max_body_bytes)) {}
HttpRequestParser::~HttpRequestParser() = default;
HttpRequestParser::HttpRequestParser(HttpRequestParser&&) noexcept = default;
HttpRequestParser& HttpRequestParser::operator=(HttpRequestParser&&) noexcept = default;

size_t HttpRequestParser::take(std::string_view bytes) {
  size_t taken = 0;
  // RFC 9112, 2.2: empty lines before a request are no part of it.
  if (!impl_->got_some()) {
    while (bytes.substr(taken).starts_with("\r\n")) taken += 2;
    if (bytes.size() == taken || bytes.substr(taken) == "\r") return taken;
  }
  const State before = state();
  if (before == State::kHead || before == State::kBody) {
    taken += impl_->put_some(bytes.substr(taken));
  }
  return taken;
}

HttpRequestParser::State HttpRequestParser::state() const { return impl_->state; }

size_t HttpRequestParser::longest_element() const {
  return std::max(impl_->max_header_bytes, kLongestChunkHead);
}

void HttpRequestParser::give_up() {
  if (state() == State::kHead) return impl_->fail_too_long();
  impl_->fail(http::make_error_code(http::error::bad_chunk));
}

ParsedRequest& HttpRequestParser::parsed() { return impl_->parsed; }
const ApiError& HttpRequestParser::error() const { return impl_->error; }

}  // namespace trtmc
