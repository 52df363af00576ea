#include "server/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <list>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "server/http_connection.h"
#include "server/patient_thread.h"

namespace trtmc {
namespace {

using asio::ip::tcp;

constexpr std::chrono::milliseconds kPause{100};  // When the system has no descriptor to spare.

std::string with_port(const std::string& host, uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

[[noreturn]] void refuse_to_listen(const std::string& where, const error_code& error) {
  if (error == asio::error::address_in_use) {
    throw Error(ErrorCode::kExhausted, fmt::format("{}: the port is taken", where),
                "end what listens there, or choose another with --port");
  }
  throw Error(
      error == asio::error::no_descriptors ? ErrorCode::kExhausted : ErrorCode::kInvalidArgument,
      fmt::format("{}: can't listen there: {}", where, error.message()));
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpServerOptions& given, Handler handler, ServedRequestLog log, Gate gate)
      : options(given),
        shared{.io = io,
               .options = options,
               .handler = std::move(handler),
               .log = std::move(log),
               .gate = std::move(gate),
               .postbox = std::make_shared<Postbox>(io),
               .on_closed = [this] { on_closed(); }} {
    if (!options.tls_cert.empty()) tls = make_tls_context(options.tls_cert, options.tls_key);
    listen();
    for (Listener& listener : listeners) {
      asio::co_spawn(io, accept_loop(listener), asio::detached);
    }
    try {
      thread = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      throw Error(ErrorCode::kExhausted, "the system refused to start a thread");
    }
  }

  ~Impl() {
    shared.postbox->post([this] {
      stop_listening();
      const auto all = shared.all;  // Each leaves the set when its last coroutine ends.
      for (HttpConnection* connection : all) connection->abort();
    });
    thread.join();
    shared.postbox->close();
  }

  struct Listener {
    explicit Listener(asio::io_context& io) : acceptor(io), pause(io) {}
    tcp::acceptor acceptor;
    Signal pause;
  };

  void listen();
  bool listen_at(const tcp::endpoint& endpoint, error_code& error);
  void stop_listening();
  asio::awaitable<void> accept_loop(Listener& listener);
  asio::awaitable<void> accept_one(Listener& listener);
  void admit(tcp::socket socket);
  void run();
  void drain();
  void on_closed();

  const HttpServerOptions options;
  asio::io_context io{1};
  std::unique_ptr<asio::ssl::context> tls;
  HttpConnections shared;
  std::list<Listener> listeners;
  uint16_t port = 0;
  int num_refusals = 0;
  bool was_short = false;  // Of descriptors.

  std::mutex mutex;
  std::condition_variable all_closed;
  std::atomic<int> num_open = 0;

  std::thread thread;
};

// Everywhere where the host's name leads: "localhost" to two addresses.
void HttpServer::Impl::listen() {
  error_code error;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is no address or name of this machine", options.host));
  }
  port = options.port;
  for (const auto& entry : found) {
    tcp::endpoint endpoint = entry.endpoint();
    endpoint.port(port);
    error_code failure;
    if (listen_at(endpoint, failure)) {
      port = listeners.back().acceptor.local_endpoint().port();
    } else if (!error) {
      error = failure;
    }
    // A machine may know an address for the name that it does not have.
    const bool is_foreign = failure == asio::error::address_family_not_supported ||
                            failure == boost::system::errc::address_not_available;
    if (failure && !is_foreign) break;
  }
  if (listeners.empty() || (error && error == asio::error::address_in_use)) {
    refuse_to_listen(with_port(options.host, options.port), error);
  }
}

bool HttpServer::Impl::listen_at(const tcp::endpoint& endpoint, error_code& error) {
  Listener& listener = listeners.emplace_back(io);
  tcp::acceptor& acceptor = listener.acceptor;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) listeners.pop_back();
  return !error;
}

void HttpServer::Impl::stop_listening() {
  for (Listener& listener : listeners) {
    error_code ignored;
    listener.acceptor.close(ignored);
    listener.pause.raise();
  }
}

// Whatever fails for one connection, there is a next one.
asio::awaitable<void> HttpServer::Impl::accept_loop(Listener& listener) {
  bool has_failed = false;
  while (listener.acceptor.is_open()) {
    try {
      if (std::exchange(has_failed, false)) {
        co_await listener.pause.wait(std::chrono::steady_clock::now() + kPause);
      }
      co_await accept_one(listener);
    } catch (const std::exception& failure) {
      has_failed = true;
      log_warning("a connection was closed: {}", failure.what());
    }
  }
}

asio::awaitable<void> HttpServer::Impl::accept_one(Listener& listener) {
  tcp::socket socket(io);
  error_code error;
  co_await listener.acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
  if (!listener.acceptor.is_open() || error == asio::error::connection_aborted) co_return;
  if (!error) {
    was_short = false;
    co_return admit(std::move(socket));
  }
  if (!std::exchange(was_short, true)) {
    log_warning("no connection can be taken: {}", error.message());
  }
  co_await listener.pause.wait(std::chrono::steady_clock::now() + kPause);
}

void HttpServer::Impl::admit(tcp::socket socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  auto purpose = HttpConnection::Purpose::kServe;
  if (num_open >= options.max_connections) {
    if (num_open >= options.max_connections + HttpServerOptions::kMaxProbes) return;
    purpose = HttpConnection::Purpose::kProbe;
  }
  PatientThread::replenish();
  const auto connection =
      std::make_shared<HttpConnection>(shared, std::move(socket), tls.get(), purpose);
  ++num_open;
  connection->start();
}

void HttpServer::Impl::run() {
  const PatientThread patient;
  for (;;) {
    try {
      io.run();
      return;
    } catch (const std::exception& failure) {
      log_error("the server's thread: {}", failure.what());
    }
  }
}

void HttpServer::Impl::drain() {
  shared.is_draining = true;
  stop_listening();
  for (HttpConnection* connection : shared.all) connection->on_drain();
}

void HttpServer::Impl::on_closed() {
  const std::lock_guard lock(mutex);
  --num_open;
  all_closed.notify_all();
}

HttpServer::HttpServer(const HttpServerOptions& options, Handler handler, ServedRequestLog log,
                       Gate gate)
    : impl_(std::make_unique<Impl>(options, std::move(handler), std::move(log), std::move(gate))) {}

HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const { return impl_->port; }

std::string HttpServer::url() const {
  return fmt::format("{}://{}", has_certificate() ? "https" : "http",
                     with_port(impl_->options.host, impl_->port));
}

int HttpServer::open_connections() const { return impl_->num_open; }

bool HttpServer::has_certificate() const { return !impl_->options.tls_cert.empty(); }

void HttpServer::reload_certificate() {
  if (!has_certificate()) return;
  auto renewed = std::make_shared<std::unique_ptr<asio::ssl::context>>(
      make_tls_context(impl_->options.tls_cert, impl_->options.tls_key));
  // Connections keep what they need of the one that they began with.
  impl_->shared.postbox->post([impl = impl_.get(), renewed] { impl->tls.swap(*renewed); });
}

void HttpServer::drain() {
  impl_->shared.postbox->post([this] { impl_->drain(); });
}

void HttpServer::cut_off() {
  impl_->shared.postbox->post([this] {
    for (HttpConnection* connection : impl_->shared.all) connection->cut_off();
  });
}

bool HttpServer::await_drained(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(impl_->mutex);
  return impl_->all_closed.wait_until(lock, deadline, [&] { return impl_->num_open == 0; });
}

}  // namespace trtmc
