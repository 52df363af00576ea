// A client's socket, plain or with TLS, and what the coroutines on the server's thread wait with.
// Private to the HTTP server: these headers show Asio.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"

namespace trtmc {

namespace asio = boost::asio;
using boost::system::error_code;

// Something to wait for on the server's thread. One waits at a time.
class Signal {
 public:
  explicit Signal(asio::io_context& io) : timer_(io) {}

  // Ends a wait, or the next one before it begins.
  void raise();
  // False if `deadline` came first.
  asio::awaitable<bool> wait(SteadyTime deadline = SteadyTime::max());

 private:
  asio::steady_timer timer_;
  bool raised_ = false;
};

// Ways for other threads to the server's, which may end before them.
class Postbox {
 public:
  explicit Postbox(asio::io_context& io) : io_(&io) {}
  // Runs `work` on the server's thread, or never.
  void post(std::function<void()> work);
  void close();

 private:
  std::mutex mutex_;
  asio::io_context* io_;
};

class HttpSocket {
 public:
  // Plain without `tls`.
  HttpSocket(asio::ip::tcp::socket socket, asio::ssl::context* tls);
  HttpSocket(const HttpSocket&) = delete;  // tls_ refers to socket_.

  std::string address() const;  // Of the other side.
  asio::awaitable<void> handshake(error_code& error);
  asio::awaitable<size_t> read_some(asio::mutable_buffer buffer, error_code& error);
  asio::awaitable<size_t> write_some(asio::const_buffer buffer, error_code& error);
  // Says that nothing more will be sent.
  asio::awaitable<void> shut_down();
  void close();
  void abort();  // Closes; what the other side has not got yet is dropped.

 private:
  asio::ip::tcp::socket socket_;
  std::optional<asio::ssl::stream<asio::ip::tcp::socket&>> tls_;
};

// What clients see of a server, by the PEM files. Throws kNotFound, kInvalidArgument.
std::unique_ptr<asio::ssl::context> make_tls_context(const std::filesystem::path& certificate,
                                                     const std::filesystem::path& key);

}  // namespace trtmc
