// The other side of an HTTP server in tests: a bare socket that sends any bytes, and a server whose
// exchanges the test answers itself.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/http_server.h"

namespace trtmc {

// A TCP connection to this machine. What does not come within half a minute never will: reads end
// then, so that a failing test ends too.
class RawSocket {
 public:
  explicit RawSocket(uint16_t port, int receive_buffer_bytes = 0);
  ~RawSocket();
  RawSocket(const RawSocket&) = delete;

  void send(std::string_view bytes) const;  // As much as the other side takes.
  void finish_sending() const;              // Half-closes.
  void reset();                             // Closes in the middle: RST.
  void close();

  // Reads until `text` has come; returns all up to its end. Without it: all until the end.
  std::string read_until(std::string_view text);
  std::string read_to_end();
  std::string read(size_t count);
  // One answer with a Content-Length or in chunks, head and body as they were sent.
  std::string read_answer();
  bool was_reset() const { return was_reset_; }  // Reading has ended so, not by an orderly end.

  int fd() const { return fd_; }

 private:
  bool receive();

  int fd_ = -1;
  std::string received_;
  bool was_reset_ = false;
};

// Exchanges as they come, for the test's thread.
class ExchangeQueue {
 public:
  HttpServer::Handler handler() {
    return [this](std::shared_ptr<Exchange> exchange) {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(exchange));
      changed_.notify_all();
    };
  }
  std::shared_ptr<Exchange> next();  // Waits for it.
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Exchange>> waiting_;
};

// The log of requests, for the test's thread.
class ServedQueue {
 public:
  ServedRequestLog log() {
    return [this](const ServedRequest& request) {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(request);
      changed_.notify_all();
    };
  }
  ServedRequest next();  // Waits for it.

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ServedRequest> waiting_;
};

// Something that happens on another thread.
class Flag {
 public:
  void raise() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool is_raised() const {
    const std::lock_guard lock(mutex_);
    return count_ > 0;
  }
  int count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  bool wait();  // False: it did not happen within half a minute.

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// On any free port of this machine.
HttpServerOptions local_options();
// A handler that says back what came: "GET /a [query] body".
void echo(const std::shared_ptr<Exchange>& exchange);
std::string get_request(std::string_view path, std::string_view more_headers = "");
// The answer to `bytes`, sent on a connection of its own.
std::string ask(uint16_t port, std::string_view bytes);
HttpResponse plain(std::string body);  // 200, text/plain

}  // namespace trtmc
