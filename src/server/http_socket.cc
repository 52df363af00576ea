#include "server/http_socket.h"

#include <fmt/format.h>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"

namespace trtmc {
namespace {

constexpr uint64_t kMaxPemBytes = 1 << 20;

auto into(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

}  // namespace

void Signal::raise() {
  raised_ = true;
  timer_.cancel();
}

asio::awaitable<bool> Signal::wait(SteadyTime deadline) {
  if (!raised_) {
    timer_.expires_at(deadline);
    error_code cancelled;
    co_await timer_.async_wait(into(cancelled));
  }
  co_return std::exchange(raised_, false) || std::chrono::steady_clock::now() < deadline;
}

void Postbox::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (io_ != nullptr) asio::post(*io_, std::move(work));
}

// Hands out the bell's memory, of which one piece is in use at a time: Asio gives it back before it
// calls the handler.
template <typename T>
class Bell::Allocator {
 public:
  using value_type = T;

  explicit Allocator(Bell& bell) : bell_(&bell) {}
  template <typename U>  // NOLINTNEXTLINE(google-explicit-constructor)
  Allocator(const Allocator<U>& other) : bell_(other.bell_) {}

  T* allocate(size_t count) {
    TRTMC_CHECK(count * sizeof(T) <= kMemory, "a bell has too little memory");
    return reinterpret_cast<T*>(bell_->memory_);
  }
  void deallocate(T*, size_t) {}

  bool operator==(const Allocator&) const = default;

 private:
  template <typename U>
  friend class Allocator;

  Bell* bell_;
};

void Postbox::ring(std::shared_ptr<Bell> bell) noexcept {
  const std::lock_guard lock(mutex_);
  if (io_ == nullptr) return;
  Bell::Allocator<std::byte> allocator(*bell);
  asio::post(*io_, asio::bind_allocator(allocator, [bell = std::move(bell)] { bell->answer(); }));
}

void Bell::ring() noexcept {
  if (!is_ringing_.exchange(true)) postbox_->ring(shared_from_this());
}

void Bell::answer() {
  is_ringing_ = false;
  answer_();
}

void Postbox::close() {
  const std::lock_guard lock(mutex_);
  io_ = nullptr;
}

HttpSocket::HttpSocket(asio::ip::tcp::socket socket, asio::ssl::context* tls)
    : socket_(std::move(socket)) {
  if (tls != nullptr) tls_.emplace(socket_, *tls);
}

std::string HttpSocket::address() const {
  error_code error;
  const auto endpoint = socket_.remote_endpoint(error);
  return error ? std::string() : endpoint.address().to_string();
}

asio::awaitable<void> HttpSocket::handshake(error_code& error) {
  if (tls_) co_await tls_->async_handshake(asio::ssl::stream_base::server, into(error));
}

asio::awaitable<size_t> HttpSocket::read_some(asio::mutable_buffer buffer, error_code& error) {
  if (tls_) co_return co_await tls_->async_read_some(buffer, into(error));
  co_return co_await socket_.async_read_some(buffer, into(error));
}

asio::awaitable<size_t> HttpSocket::write_some(asio::const_buffer buffer, error_code& error) {
  if (tls_) co_return co_await tls_->async_write_some(buffer, into(error));
  co_return co_await socket_.async_write_some(buffer, into(error));
}

asio::awaitable<void> HttpSocket::await_reset() {
  error_code ignored;
  co_await socket_.async_wait(asio::ip::tcp::socket::wait_error, into(ignored));
}

asio::awaitable<void> HttpSocket::shut_down() {
  error_code ignored;
  if (tls_) co_await tls_->async_shutdown(into(ignored));
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void HttpSocket::close() {
  error_code ignored;
  socket_.close(ignored);
}

void HttpSocket::abort() {
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

std::unique_ptr<asio::ssl::context> make_tls_context(const std::filesystem::path& certificate,
                                                     const std::filesystem::path& key) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // OpenSSL would ask for a key's password on the terminal.
  context->set_password_callback([](size_t, asio::ssl::context::password_purpose) { return ""; });

  error_code error;
  const std::string chain = read_file(certificate, kMaxPemBytes);
  context->use_certificate_chain(asio::buffer(chain), error);
  if (error) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: no certificate in PEM form", certificate.string()));
  }
  const std::string secret = read_file(key, kMaxPemBytes);
  context->use_private_key(asio::buffer(secret), asio::ssl::context::pem, error);
  if (error && SSL_CTX_get0_privatekey(native) == nullptr &&
      error.message().find("mismatch") == std::string::npos) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: no private key in PEM form without a password", key.string()));
  }
  if (error || SSL_CTX_check_private_key(native) != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} is not the key of the certificate in {}", key.string(),
                            certificate.string()));
  }
  return context;
}

}  // namespace trtmc
