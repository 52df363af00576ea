// A client's socket, plain or with TLS, and what the coroutines on the server's thread wait with.
// Private to the HTTP server: these headers show Asio.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
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

class Bell;

// Ways for other threads to the server's, which may end before them.
class Postbox {
 public:
  explicit Postbox(asio::io_context& io) : io_(&io) {}
  // Runs `work` on the server's thread, or never.
  void post(std::function<void()> work);
  void ring(std::shared_ptr<Bell> bell) noexcept;
  void close();

 private:
  std::mutex mutex_;
  asio::io_context* io_;
};

// Tells the server's thread that there is something to do. What that takes is made with the bell:
// to ring needs no memory, so that no news is lost for want of it.
class Bell : public std::enable_shared_from_this<Bell> {
 public:
  // Whenever it has been rung, `answer` is called on the server's thread, once for all who rang
  // meanwhile.
  Bell(std::shared_ptr<Postbox> postbox, std::function<void()> answer)
      : postbox_(std::move(postbox)), answer_(std::move(answer)) {}
  Bell(const Bell&) = delete;

  void ring() noexcept;  // From any thread.

 private:
  friend class Postbox;
  template <typename T>
  class Allocator;

  static constexpr size_t kMemory = 128;  // More than Asio needs for a handler of two words.

  void answer();

  const std::shared_ptr<Postbox> postbox_;
  const std::function<void()> answer_;
  std::atomic<bool> is_ringing_ = false;
  alignas(std::max_align_t) std::byte memory_[kMemory];  // Of what is posted while it rings.
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
  // Until the other side has gone altogether (RST), or this one closes. For who has read its end,
  // which it may also have sent since it has said all and waits for an answer.
  asio::awaitable<void> await_reset();
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
