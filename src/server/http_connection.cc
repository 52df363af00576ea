#include "server/http_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "base/log.h"
#include "server/patient_thread.h"
#include "server/sse.h"

namespace trtmc {
namespace {

constexpr size_t kReadBytes = size_t{16} << 10;
constexpr size_t kMaxReceivedBytes = size_t{64} << 10;  // Ahead of what is parsed.
constexpr std::chrono::seconds kGoodbye{2};
constexpr std::string_view kHeartbeat = ":\n\n";

ApiError timed_out(int status, std::string message) {
  return {.status = status, .message = std::move(message), .type = "timeout_error"};
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

void HttpConnections::relieve() {
  const auto greed = [](const HttpConnection* connection) {
    return std::pair(connection->is_stalled(), connection->unsent_bytes());
  };
  HttpConnection* const greediest = *std::ranges::max_element(all, {}, greed);
  log_warning("a client has not taken {} bytes of its answers: cut off, since {} wait for all",
              greediest->unsent_bytes(), unsent_bytes);
  greediest->abort();
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
  is_closed_ = is_gone_ = is_broken_ = true;
  shared_.unsent_bytes -= std::exchange(unsent_bytes_, 0);
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
  const SteadyTime deadline = after(now(), patience(shared_.options.header_timeout));
  while (!is_secured_ && !is_closed_) {
    const bool is_late = !co_await changed_.wait(deadline);
    if (is_late) break;
  }
  co_return is_secured_ && !is_broken_;
}

asio::awaitable<void> HttpConnection::read_loop() {
  const size_t limit = std::max(kMaxReceivedBytes, shared_.options.max_header_bytes + kReadBytes);
  std::array<char, kReadBytes> buffer;
  error_code error;
  while (!error && !is_closed_) {
    while (is_receiving_ && !is_closed_ && received_.size() >= limit) co_await room_.wait();
    const size_t count = co_await socket_.read_some(asio::buffer(buffer), error);
    if (!error && is_receiving_) received_.append(buffer.data(), count);
    changed_.raise();
  }
  is_closed_ = true;
  changed_.raise();
  if (error == asio::error::eof) {
    // Whoever has gone sends the same as who waits for an answer, until something comes there.
    last_piece_ = SteadyTime::min();
    co_await socket_.await_reset();
  }
  is_gone_ = true;
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
      const size_t released = std::min(count, unsent_bytes_);  // None once it has ended.
      unsent_bytes_ -= released;
      shared_.unsent_bytes -= released;
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

std::string HttpConnection::make_id() {
  return fmt::format("req-{:016x}{:016x}", shared_.random(), shared_.random());
}

void HttpConnection::open_channel() {
  PatientThread::replenish();
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
              .keeps_alive = parsed.keeps_alive && !refusal_ && purpose_ == Purpose::kServe &&
                             parser_->state() == HttpRequestParser::State::kDone};
  more_headers_ = cors_headers(shared_.options.cors_origins, request);
  more_headers_.add("X-Request-Id", request.id);
  request_begin_ = now();
  last_piece_ = is_closed_ ? SteadyTime::min() : request_begin_;
  has_head_ = is_event_stream_ = has_ended_ = is_cut_off_ = false;
}

void HttpConnection::dispatch() {
  if (refusal_) return channel_->respond(std::move(*refusal_));
  HttpRequest& request = parser_->parsed().request;
  if (auto response = cors_preflight(shared_.options.cors_origins, request)) {
    return channel_->respond(std::move(*response));
  }
  if (is_foreign(request)) return channel_->respond(error_response(foreign_page()));
  try {
    shared_.handler(make_exchange(std::move(request), channel_, std::move(body_share_)));
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
    if (is_broken_ || (is_gone_ && !has_ended_)) {
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

bool HttpConnection::is_stalled() const {
  return has_unsent() && now() >= after(progress_, shared_.options.max_unsent.time);
}

void HttpConnection::queue(std::string_view bytes) {
  if (is_broken_) return;
  if (!has_unsent()) progress_ = now();
  unsent_ += bytes;
  unsent_bytes_ += bytes.size();
  shared_.unsent_bytes += bytes.size();
  work_.raise();
  const HttpServerOptions& options = shared_.options;
  if (shared_.unsent_bytes > std::max(options.max_held_bytes, options.max_unsent.bytes)) {
    shared_.relieve();
  }
}

// What says nothing but that the connection is alive: into a stream of events; and in front of an
// answer to who has sent its end, to find out whether anybody is there (RFC 9110, 15.2: clients
// throw away what they did not wait for).
bool HttpConnection::may_beat() const {
  return !has_ended_ && !has_unsent() && (is_event_stream_ || (is_closed_ && !has_head_));
}

void HttpConnection::beat() {
  if (is_event_stream_) return queue_piece(kHeartbeat);
  if (framing_.is_http_1_0) return abort();  // Which does not know them.
  last_piece_ = now();
  queue(kHttpContinue);
}

SteadyTime HttpConnection::answer_deadline() const {
  const HttpServerOptions& options = shared_.options;
  SteadyTime deadline = SteadyTime::max();
  if (has_unsent()) deadline = after(progress_, patience(options.send_timeout));
  if (!has_ended_) deadline = std::min(deadline, after(request_begin_, options.request_timeout));
  if (may_beat()) deadline = std::min(deadline, after(last_piece_, options.heartbeat));
  return deadline;
}

void HttpConnection::look_at_clock() {
  const HttpServerOptions& options = shared_.options;
  const SteadyTime time = now();
  if (has_unsent() && time >= after(progress_, patience(options.send_timeout))) return abort();
  if (!has_ended_ && time >= after(request_begin_, options.request_timeout)) {
    return give_up(timed_out(504, "the answer took too long"));
  }
  if (may_beat() && time >= after(last_piece_, options.heartbeat)) beat();
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
  give_up(cut_off_error());
  changed_.raise();
}

}  // namespace trtmc
