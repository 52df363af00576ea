#include "server/http_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "base/log.h"
#include "server/health_api.h"
#include "server/sse.h"

namespace trtmc {
namespace {

constexpr size_t kReadBytes = size_t{16} << 10;
constexpr size_t kMaxReceivedBytes = size_t{64} << 10;  // Ahead of what is parsed.
constexpr std::chrono::seconds kGoodbye{2};
constexpr std::chrono::seconds kProbeTime{2};  // For a request beyond the connections allowed.
constexpr std::string_view kHeartbeat = ":\n\n";

SteadyTime now() { return std::chrono::steady_clock::now(); }

SteadyTime after(SteadyTime start, std::chrono::milliseconds timeout) {
  return timeout.count() == 0 ? SteadyTime::max() : start + timeout;
}

ApiError timed_out(int status, std::string message) {
  return {.status = status, .message = std::move(message), .type = "timeout_error"};
}

HttpResponse too_many_connections() {
  return error_response({.status = 503,
                         .message = "too many connections; try again later",
                         .type = "rate_limit_error"});
}

ApiError foreign_page() {
  return {.status = 403,
          .message = "a page of another origin may not ask; --cors-origin lets it",
          .type = "invalid_request_error"};
}

}  // namespace

HttpConnection::HttpConnection(HttpConnections& shared, asio::ip::tcp::socket socket,
                               asio::ssl::context* tls, Purpose purpose)
    : shared_(shared),
      socket_(std::move(socket), tls),
      purpose_(purpose),
      client_(socket_.address()),
      changed_(shared.io),
      room_(shared.io),
      work_(shared.io) {
  shared_.all.insert(this);
}

HttpConnection::~HttpConnection() {
  shared_.all.erase(this);
  shared_.on_closed();
}

void HttpConnection::start() {
  bell_ = std::make_shared<Bell>(shared_.postbox, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->changed_.raise();
  });
  spawn(run());
}

// The coroutine keeps the connection alive. Without memory the connection ends, not the server.
void HttpConnection::spawn(asio::awaitable<void> coroutine) {
  asio::co_spawn(shared_.io, std::move(coroutine),
                 [self = shared_from_this()](const std::exception_ptr& failure) {
                   if (failure) self->abort();
                 });
}

void HttpConnection::end() {
  is_closed_ = is_broken_ = true;
  for (Signal* signal : {&changed_, &room_, &work_}) signal->raise();
  if (channel_) channel_->lose();
}

void HttpConnection::abort() {
  socket_.abort();
  end();
}

asio::awaitable<void> HttpConnection::run() {
  // A co_await stands alone everywhere here: g++ 12 miscompiles it within a condition.
  const bool is_secure = co_await secure();
  if (is_secure) {
    spawn(read_loop());
    spawn(write_loop());
    do {
      const bool has_request = co_await read_request();
      if (!has_request) break;
      open_channel();
      dispatch();
      co_await answer();
      channel_.reset();
    } while (framing_.keeps_alive && !is_broken_ && !shared_.is_draining);
    if (!is_broken_) co_await say_goodbye();
  }
  socket_.close();
  end();
}

asio::awaitable<void> HttpConnection::shake_hands() {
  error_code error;
  co_await socket_.handshake(error);
  is_secured_ = !error;
  is_closed_ = is_closed_ || error;
  changed_.raise();
}

asio::awaitable<bool> HttpConnection::secure() {
  spawn(shake_hands());
  const SteadyTime deadline = after(now(), shared_.options.header_timeout);
  while (!is_secured_ && !is_closed_) {
    const bool is_late = !co_await changed_.wait(deadline);
    if (is_late) break;
  }
  co_return is_secured_ && !is_broken_;
}

asio::awaitable<void> HttpConnection::read_loop() {
  const size_t limit = std::max(kMaxReceivedBytes, shared_.options.max_header_bytes + kReadBytes);
  std::array<char, kReadBytes> buffer;
  for (;;) {
    while (is_receiving_ && !is_closed_ && received_.size() >= limit) co_await room_.wait();
    error_code error;
    const size_t count = co_await socket_.read_some(asio::buffer(buffer), error);
    if (error || is_closed_) break;
    if (is_receiving_) received_.append(buffer.data(), count);
    changed_.raise();
  }
  is_closed_ = true;
  changed_.raise();
}

asio::awaitable<void> HttpConnection::write_loop() {
  while (!is_broken_) {
    if (unsent_.empty()) {
      co_await work_.wait();
      continue;
    }
    sending_.swap(unsent_);
    const size_t payload = std::exchange(unsent_payload_, 0);
    for (size_t sent = 0; sent < sending_.size() && !is_broken_;) {
      error_code error;
      const size_t count = co_await socket_.write_some(
          asio::buffer(sending_.data() + sent, sending_.size() - sent), error);
      if (error) is_broken_ = true;
      sent += count;
      progress_ = now();
      if (channel_) {
        channel_->served().bytes += count;
        channel_->on_progress();
      }
    }
    sending_.clear();
    if (sending_.capacity() > kMaxReceivedBytes) sending_.shrink_to_fit();
    if (channel_) channel_->on_sent(payload);
    changed_.raise();
  }
}

// Says that all has been sent, and takes what the client still sends: closing with bytes unread
// would have its system throw away the answer.
asio::awaitable<void> HttpConnection::say_goodbye() {
  is_receiving_ = false;
  received_.clear();
  room_.raise();
  spawn(socket_.shut_down());
  const SteadyTime deadline = now() + kGoodbye;
  while (!is_closed_) {
    const bool is_late = !co_await changed_.wait(deadline);
    if (is_late) break;
  }
}

// ---- A request ----

void HttpConnection::enter(Phase phase) {
  if (phase == phase_) return;
  phase_ = phase;
  phase_begin_ = now();
}

SteadyTime HttpConnection::read_deadline() const {
  const HttpServerOptions& options = shared_.options;
  switch (phase_) {
    case Phase::kIdle:
      if (purpose_ == Purpose::kProbe) return phase_begin_ + kProbeTime;
      return after(phase_begin_, is_first_ ? options.header_timeout : options.idle_timeout);
    case Phase::kHead:
      return after(phase_begin_, options.header_timeout);
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
  while (!parse_some()) {
    const bool is_idle = phase_ == Phase::kIdle;
    if (is_closed_ || (is_idle && shared_.is_draining)) co_return false;
    const bool has_news = co_await changed_.wait(read_deadline());
    if (has_news) continue;
    if (is_idle) co_return false;
    refusal_ = error_response(timed_out(408, "the request did not come in time"));
    break;
  }
  is_first_ = false;
  if (purpose_ == Purpose::kProbe && !refusal_ && !is_probe(parser_->parsed().request.path)) {
    refusal_ = too_many_connections();
  }
  co_return true;
}

// True once the request is whole, or can't become so.
bool HttpConnection::parse_some() {
  using State = HttpRequestParser::State;
  for (size_t taken = 1; taken > 0;) {
    taken = parser_->take(received_);
    received_.erase(0, taken);
    if (parser_->state() == State::kHead && (taken > 0 || !received_.empty())) enter(Phase::kHead);
    if (parser_->state() == State::kBody) enter(Phase::kBody);
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
    queue("HTTP/1.1 100 Continue\r\n\r\n");
  }
  room_.raise();
  return false;
}

std::string HttpConnection::make_id() {
  return fmt::format("req-{:016x}{:016x}", shared_.random(), shared_.random());
}

void HttpConnection::open_channel() {
  ParsedRequest& parsed = parser_->parsed();
  HttpRequest& request = parsed.request;
  request.client = client_;
  const auto id = request.headers.find("X-Request-Id");
  request.id = id && is_request_id(*id) ? std::string(*id) : make_id();
  channel_ = std::make_shared<AnswerChannel>([bell = bell_] { bell->ring(); },
                                             shared_.options.max_unsent, shared_.log);
  ServedRequest& served = channel_->served();
  served.start = std::chrono::system_clock::now();
  served.id = request.id;
  served.client = request.client;
  served.method = request.method;
  served.path = request.path;
  framing_ = {.is_http_1_0 = parsed.is_http_1_0,
              .has_body = request.method != "HEAD",
              .keeps_alive = parsed.keeps_alive && !refusal_ && purpose_ == Purpose::kServe};
  more_headers_ = cors_headers(shared_.options.cors_origins, request);
  more_headers_.add("X-Request-Id", request.id);
  request_begin_ = last_piece_ = now();
  has_head_ = is_event_stream_ = has_ended_ = is_cut_off_ = false;
}

void HttpConnection::dispatch() {
  if (refusal_) return channel_->respond(std::move(*refusal_));
  HttpRequest& request = parser_->parsed().request;
  if (auto response = cors_preflight(shared_.options.cors_origins, request)) {
    return channel_->respond(std::move(*response));
  }
  if (shared_.options.refuses_foreign_pages && request.method != "GET" &&
      is_foreign_page(shared_.options.cors_origins, request)) {
    return channel_->respond(error_response(foreign_page()));
  }
  try {
    shared_.handler(make_exchange(std::move(request), channel_));
  } catch (const std::exception& failure) {
    log_error("{}: {}", channel_->served().id, failure.what());
    channel_->fail(AnswerChannel::Failure::kNoAnswer);  // If no exchange has done so.
  }
}

// ---- Its answer ----

asio::awaitable<void> HttpConnection::answer() {
  for (;;) {
    if (!has_ended_) take_output();
    if (has_ended_ && !has_unsent()) break;
    if (is_broken_ || (is_closed_ && !has_ended_)) {
      abort();
      break;
    }
    look_at_clock();
    if (!is_broken_) co_await changed_.wait(answer_deadline());
  }
  ServedRequest& served = channel_->served();
  served.duration_ms = milliseconds_between(request_begin_, now());
  served.complete = has_ended_ && !is_broken_ && !is_cut_off_;
}

void HttpConnection::take_output() {
  AnswerChannel::Output output = channel_->take();
  if (output.is_broken) return abort();
  if (output.head) queue_head(*output.head, output.is_stream);
  if (!output.bytes.empty()) {
    queue_piece(output.bytes);
    unsent_payload_ += output.bytes.size();
  }
  if (!output.has_ended) return;
  has_ended_ = true;
  if (framing_.in_chunks()) queue(kLastHttpChunk);
}

void HttpConnection::queue_head(const HttpResponse& head, bool is_stream) {
  framing_.is_stream = is_stream;
  framing_.keeps_alive =
      framing_.keeps_alive && !shared_.is_draining && !(is_stream && framing_.is_http_1_0);
  const auto type = head.headers.find("Content-Type");
  is_event_stream_ = is_stream && type && type->starts_with("text/event-stream");
  has_head_ = true;
  channel_->served().status = head.status;
  queue(http_head(head, framing_, more_headers_));
  if (framing_.has_body && !is_stream) queue(head.body);
}

void HttpConnection::queue_piece(std::string_view bytes) {
  last_piece_ = now();
  if (!framing_.has_body) return;
  queue(framing_.in_chunks() ? http_chunk(bytes) : std::string(bytes));
}

void HttpConnection::queue(std::string_view bytes) {
  if (!has_unsent()) progress_ = now();
  unsent_ += bytes;
  work_.raise();
}

bool HttpConnection::may_beat() const { return is_event_stream_ && !has_ended_ && !has_unsent(); }

SteadyTime HttpConnection::answer_deadline() const {
  const HttpServerOptions& options = shared_.options;
  SteadyTime deadline = SteadyTime::max();
  if (has_unsent()) deadline = after(progress_, options.send_timeout);
  if (!has_ended_) deadline = std::min(deadline, after(request_begin_, options.request_timeout));
  if (may_beat()) deadline = std::min(deadline, after(last_piece_, options.heartbeat));
  return deadline;
}

void HttpConnection::look_at_clock() {
  const HttpServerOptions& options = shared_.options;
  const SteadyTime time = now();
  if (has_unsent() && time >= after(progress_, options.send_timeout)) return abort();
  if (!has_ended_ && time >= after(request_begin_, options.request_timeout)) {
    return give_up(timed_out(504, "the answer took too long"));
  }
  if (may_beat() && time >= after(last_piece_, options.heartbeat)) queue_piece(kHeartbeat);
}

// What the maker has written so far is sent, since it is whole events.
void HttpConnection::give_up(const ApiError& error) {
  if (!channel_ || has_ended_) return;
  channel_->lose();
  if (!has_head_) {
    has_ended_ = true;
    return queue_head(error_response(error), false);
  }
  if (!is_event_stream_) return abort();
  is_cut_off_ = has_ended_ = true;
  framing_.keeps_alive = false;
  queue_piece(error_event(error));
  if (framing_.in_chunks()) queue(kLastHttpChunk);
}

void HttpConnection::cut_off() {
  give_up({.status = 503,
           .message = "the answer was cut off, since the server stops",
           .type = "server_error"});
  changed_.raise();
}

}  // namespace trtmc
