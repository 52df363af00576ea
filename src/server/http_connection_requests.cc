// The requests of a connection on their way in.
#include <algorithm>
#include <new>
#include <utility>

#include "server/health_api.h"
#include "server/http_connection.h"

namespace trtmc {
namespace {

constexpr std::chrono::seconds kProbeTime{2};  // For each part of a request beyond the connections.

ApiError too_late() {
  return {.status = 408, .message = "the request did not come in time", .type = "timeout_error"};
}

ApiError too_many_connections() {
  return {.status = 503,
          .message = "too many connections; try again later",
          .type = "rate_limit_error"};
}

ApiError too_many_bodies() {
  return {.status = 503,
          .message = "too many large requests; try again later",
          .type = "rate_limit_error"};
}

}  // namespace

void HttpConnection::enter(Phase phase) {
  if (phase == phase_) return;
  phase_ = phase;
  phase_begin_ = now();
}

// Of `timeout`, what this connection gets.
std::chrono::milliseconds HttpConnection::patience(std::chrono::milliseconds timeout) const {
  return purpose_ == Purpose::kProbe ? kProbeTime : timeout;
}

SteadyTime HttpConnection::read_deadline() const {
  const HttpServerOptions& options = shared_.options;
  switch (phase_) {
    case Phase::kIdle:
      return after(phase_begin_,
                   patience(is_first_ ? options.header_timeout : options.idle_timeout));
    case Phase::kHead:
      return after(phase_begin_, patience(options.header_timeout));
    case Phase::kBody:
      break;
  }
  return after(phase_begin_, options.body_timeout);
}

asio::awaitable<bool> HttpConnection::read_request() {
  const HttpServerOptions& options = shared_.options;
  parser_.emplace(options.max_header_bytes, options.max_body_bytes);
  refusal_.reset();
  phase_ = Phase::kIdle;
  phase_begin_ = now();
  has_continued_ = false;
  body_share_.reset();
  while (!parse_or_refuse()) {
    const bool is_idle = phase_ == Phase::kIdle;
    if (is_closed_ || (is_idle && shared_.is_draining)) co_return false;
    const bool has_news = co_await changed_.wait(read_deadline());
    if (has_news) continue;
    if (is_idle) co_return false;
    refusal_ = error_response(too_late());
    break;
  }
  is_first_ = false;
  if (purpose_ == Purpose::kProbe && !refusal_ && !is_probe(parser_->parsed().request.path)) {
    refusal_ = error_response(too_many_connections());
  }
  co_return true;
}

bool HttpConnection::is_foreign(const HttpRequest& request) const {
  const HttpServerOptions& options = shared_.options;
  return options.refuses_foreign_pages && request.method != "GET" &&
         is_foreign_page(options.cors_origins, options.host, request);
}

// False if what there is of the body is all that is taken: nobody looks at it, or there are too
// many for the server.
bool HttpConnection::take_in_body() {
  const HttpServerOptions& options = shared_.options;
  const HttpRequest& request = parser_->parsed().request;
  if (phase_ != Phase::kBody) {
    enter(Phase::kBody);
    if (purpose_ == Purpose::kProbe || is_foreign(request)) return false;
    if (shared_.gate && !shared_.gate(request)) return false;
    body_share_ = std::make_shared<BodyShare>(shared_.body_bytes);
  }
  body_share_->grow_to(request.body.size());
  if (*shared_.body_bytes <= std::max(options.max_held_bytes, options.max_body_bytes)) return true;
  refusal_ = error_response(too_many_bodies());
  drop_body();
  return false;
}

void HttpConnection::drop_body() {
  parser_->parsed().request.body = {};
  body_share_.reset();
}

bool HttpConnection::parse_or_refuse() {
  try {
    return parse_some();
  } catch (const std::bad_alloc&) {
    drop_body();  // Makes room for what says so.
    refusal_ = error_response(api_error({ErrorCode::kExhausted, std::string(kOutOfMemory)}));
    return true;
  }
}

// True once the request is whole, can't become so, or need not.
bool HttpConnection::parse_some() {
  using State = HttpRequestParser::State;
  for (size_t taken = 1; taken > 0;) {
    taken = parser_->take(received_);
    received_.erase(0, taken);
    if (parser_->state() == State::kHead && (taken > 0 || !received_.empty())) enter(Phase::kHead);
    const bool has_body = parser_->state() == State::kBody || phase_ == Phase::kBody;
    if (has_body && !take_in_body()) return true;
    if (parser_->state() == State::kDone) return true;
    if (parser_->state() == State::kFailed || received_.empty()) break;
  }
  const bool is_stuck = received_.size() >= parser_->longest_element();
  if (is_stuck && parser_->state() != State::kFailed) parser_->give_up();
  if (parser_->state() == State::kFailed) {
    refusal_ = error_response(parser_->error());
    return true;
  }
  if (phase_ == Phase::kBody && received_.empty() && parser_->parsed().expects_continue &&
      !std::exchange(has_continued_, true)) {
    queue(kHttpContinue);
  }
  room_.raise();
  return false;
}

}  // namespace trtmc
