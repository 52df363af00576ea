// HTTP/1.1 over TCP or TLS: connections, limits, timeouts, streams. What a request means is the
// handler's business.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/answer_channel.h"
#include "server/exchange.h"
#include "server/served_request.h"

namespace trtmc {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // A name or an address.
  uint16_t port = 8080;            // 0: one that is free.
  std::filesystem::path tls_cert;  // PEM, with its chain; both or none.
  std::filesystem::path tls_key;
  std::vector<std::string> cors_origins;  // That browsers may ask from; "*": all.
  // Where no key is asked for, a page of another origin must not have the server compute: 403.
  bool refuses_foreign_pages = false;

  int max_connections = 1024;                  // Beyond it only probes are answered, else 503.
  static constexpr int kMaxProbes = 64;        // So many more; beyond them: closed unanswered.
  size_t max_header_bytes = size_t{16} << 10;  // 431 beyond it.
  size_t max_body_bytes = size_t{8} << 20;     // 413 beyond it.
  UnsentLimit max_unsent;                      // Of a stream; who lets more pile up is cut off.
  // For all clients together, of what they have sent, beyond it 503, and of what they have not
  // taken: beyond it whoever lets most pile up is cut off. At least what one alone may have.
  size_t max_held_bytes = size_t{256} << 20;
  std::chrono::milliseconds header_timeout{10'000};  // From a request's first byte on: 408.
  std::chrono::milliseconds body_timeout{30'000};    // From the headers' end on: 408.
  std::chrono::milliseconds idle_timeout{75'000};    // Before a request: closed.
  std::chrono::milliseconds send_timeout{30'000};    // Without any byte taken: cut off.
  // From the request to its answer's end: 504, or an event with an error. 0: none.
  std::chrono::milliseconds request_timeout{600'000};
  std::chrono::milliseconds heartbeat{15'000};  // Without a piece of a stream of events: a comment.
};

class HttpServer {
 public:
  // Called on the server's thread for every request that came whole, so it must be quick.
  using Handler = std::function<void(std::shared_ptr<Exchange>)>;
  // Whether the body that comes behind that head will be looked at. If not, the handler gets the
  // request without it, and the connection ends after the answer.
  using Gate = std::function<bool(const HttpRequest& head)>;

  // Listens and serves from now on. Throws kInvalidArgument (host, certificate), kNotFound (a
  // file), kExhausted (the port is taken, no descriptors are left).
  // `log`, if any, gets every request once it is over, on any thread; it may be called even after
  // the server has gone, by an exchange that outlives it. Without `gate` all bodies are read.
  HttpServer(const HttpServerOptions& options, Handler handler, ServedRequestLog log = {},
             Gate gate = {});
  ~HttpServer();  // Cuts off what still runs.
  HttpServer(const HttpServer&) = delete;

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080"

  int open_connections() const;

  bool has_certificate() const;
  // Reads certificate and key again, if there are any, for the connections to come. Throws as the
  // constructor does; what there is stays then.
  void reload_certificate();

  // Takes no more connections, closes those without a request, and the others after their answers.
  void drain();
  // Ends the answers that have not ended with an error: 503, or an event within a stream.
  void cut_off();
  // Waits until no connection is left, or until `deadline`. True if none is.
  bool await_drained(std::chrono::steady_clock::time_point deadline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trtmc
