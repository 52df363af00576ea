// One client's connection: requests in, one after the other, and their answers out. Private to the
// HTTP server; all of it runs on the server's thread.
#pragma once

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <unordered_set>

#include "server/answer_channel.h"
#include "server/api_error.h"
#include "server/http_head.h"
#include "server/http_request_parser.h"
#include "server/http_server.h"
#include "server/http_socket.h"

namespace trtmc {

class HttpConnection;

inline SteadyTime now() { return std::chrono::steady_clock::now(); }

// `timeout` behind `start`; 0: none.
inline SteadyTime after(SteadyTime start, std::chrono::milliseconds timeout) {
  return timeout.count() == 0 ? SteadyTime::max() : start + timeout;
}

// What one request has of the bytes of bodies that a server holds for all its clients.
class BodyShare {
 public:
  explicit BodyShare(std::shared_ptr<std::atomic<size_t>> of_all) : of_all_(std::move(of_all)) {}
  ~BodyShare() { *of_all_ -= bytes_; }
  BodyShare(const BodyShare&) = delete;
  void grow_to(size_t bytes) {
    *of_all_ += bytes - bytes_;
    bytes_ = bytes;
  }

 private:
  const std::shared_ptr<std::atomic<size_t>> of_all_;
  size_t bytes_ = 0;
};

// What the connections of a server share.
struct HttpConnections {
  asio::io_context& io;
  const HttpServerOptions& options;
  const HttpServer::Handler handler;
  const ServedRequestLog log;
  const HttpServer::Gate gate;
  const std::shared_ptr<Postbox> postbox;
  std::function<void()> on_closed;  // One has been, and is in `all` no more.
  std::unordered_set<HttpConnection*> all{};
  bool is_draining = false;
  std::mt19937_64 random{std::random_device{}()};
  // Of requests that come in or wait for who reads them, on any thread.
  const std::shared_ptr<std::atomic<size_t>> body_bytes = std::make_shared<std::atomic<size_t>>(0);
  size_t unsent_bytes = 0;  // Of all connections.

  void relieve();  // Cuts off whoever lets most pile up, of those who don't read if there are any.
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  enum class Purpose { kServe, kProbe };  // kProbe: there are too many; 503 but to probes.

  HttpConnection(HttpConnections& shared, asio::ip::tcp::socket socket, asio::ssl::context* tls,
                 Purpose purpose);
  ~HttpConnection();

  void start();
  void on_drain() { changed_.raise(); }
  // The answer, if there is one that has not ended, ends with an error.
  void cut_off();
  void abort();  // What the client has not got yet is dropped.
  size_t unsent_bytes() const { return unsent_bytes_; }
  bool is_stalled()
      const;  // Nothing has been taken for max_unsent.time, though there is something.

 private:
  enum class Phase { kIdle, kHead, kBody };  // Of a request on its way in.

  void spawn(asio::awaitable<void> coroutine);
  asio::awaitable<void> run();
  asio::awaitable<void> read_loop();
  asio::awaitable<void> write_loop();
  asio::awaitable<void> shake_hands();
  asio::awaitable<bool> secure();  // False if the client can't, or is too slow.
  asio::awaitable<void> say_goodbye();
  void end();

  // False if there is none: the client has gone, or was idle for too long.
  asio::awaitable<bool> read_request();
  bool parse_some();
  bool parse_or_refuse();  // The same; without memory the request is refused.
  void drop_body();
  bool take_in_body();
  bool is_foreign(const HttpRequest& request) const;
  void enter(Phase phase);
  std::chrono::milliseconds patience(std::chrono::milliseconds timeout) const;
  SteadyTime read_deadline() const;

  void open_channel();
  void dispatch();
  asio::awaitable<void> answer();
  void take_output();
  void queue_head(const HttpResponse& head, bool is_stream);
  void queue_piece(std::string_view bytes);
  void queue(std::string_view bytes);
  bool has_unsent() const { return !unsent_.empty() || !sending_.empty(); }
  void look_at_clock();
  void give_up(const ApiError& error);
  bool may_beat() const;
  void beat();
  SteadyTime answer_deadline() const;
  std::string make_id();

  HttpConnections& shared_;
  HttpSocket socket_;
  const Purpose purpose_;
  const std::string client_;
  Signal changed_;              // For run(), which decides everything.
  Signal room_;                 // For read_loop().
  Signal work_;                 // For write_loop().
  std::shared_ptr<Bell> bell_;  // Raises changed_; for other threads.

  std::string received_;  // Not parsed yet.
  bool is_secured_ = false;
  bool is_receiving_ = true;  // False: what comes is thrown away.
  bool is_closed_ = false;    // Nothing more will come; the client may wait for its answer.
  bool is_gone_ = false;      // The client waits for nothing.
  bool is_broken_ = false;    // Nothing can be sent either.

  std::string unsent_, sending_;
  size_t unsent_bytes_ = 0;    // Of both.
  size_t unsent_payload_ = 0;  // Of a stream, in unsent_.
  SteadyTime progress_;        // When the client last took bytes, or nothing was unsent.

  // The request.
  bool is_first_ = true;
  std::optional<HttpRequestParser> parser_;
  std::optional<HttpResponse> refusal_;  // Instead of what a handler says.
  Phase phase_ = Phase::kIdle;
  SteadyTime phase_begin_;
  bool has_continued_ = false;
  std::shared_ptr<BodyShare> body_share_;

  // Its answer.
  std::shared_ptr<AnswerChannel> channel_;
  AnswerFraming framing_;
  HttpHeaders more_headers_;
  SteadyTime request_begin_, last_piece_;
  bool has_head_ = false;
  bool is_event_stream_ = false;
  bool has_ended_ = false;   // All of it is queued.
  bool is_cut_off_ = false;  // Before its end, with an event that says so.
};

}  // namespace trtmc
