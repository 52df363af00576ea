#include "tests/support/http_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace trtmc {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr int kPatienceMs = 30'000;

}  // namespace

RawSocket::RawSocket(uint16_t port, int receive_buffer_bytes)
    : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  if (receive_buffer_bytes > 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close();
    throw std::runtime_error("nobody listens");
  }
}

RawSocket::~RawSocket() { close(); }

void RawSocket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void RawSocket::reset() {
  const linger hard{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close();
}

void RawSocket::finish_sending() const { shutdown(fd_, SHUT_WR); }

void RawSocket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

bool RawSocket::receive() {
  pollfd wanted{fd_, POLLIN, 0};
  if (poll(&wanted, 1, kPatienceMs) <= 0) throw std::runtime_error("nothing comes");
  char buffer[65536];
  const ssize_t count = ::recv(fd_, buffer, sizeof buffer, 0);
  if (count < 0) was_reset_ = true;
  if (count <= 0) return false;
  received_.append(buffer, static_cast<size_t>(count));
  return true;
}

std::string RawSocket::read(size_t count) {
  while (received_.size() < count && receive()) continue;
  std::string taken = received_.substr(0, count);
  received_.erase(0, taken.size());
  return taken;
}

std::string RawSocket::read_until(std::string_view text) {
  size_t at = std::string::npos;
  // What has been looked through is not looked through again: an answer may have megabytes.
  for (size_t from = 0; (at = received_.find(text, from)) == std::string::npos;) {
    from = received_.size() - std::min(received_.size(), text.size());
    if (!receive()) break;
  }
  return read(at == std::string::npos ? received_.size() : at + text.size());
}

std::string RawSocket::read_to_end() {
  while (receive()) continue;
  return std::exchange(received_, {});
}

std::string RawSocket::read_answer() {
  std::string answer = read_until("\r\n\r\n");
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  if (const size_t at = answer.find(kLength); at != std::string::npos) {
    size_t length = 0;
    std::from_chars(answer.data() + at + kLength.size(), answer.data() + answer.size(), length);
    return answer + read(length);
  }
  if (answer.find("\r\nTransfer-Encoding: chunked") == std::string::npos) return answer;
  return answer + read_until("0\r\n\r\n");
}

std::shared_ptr<Exchange> ExchangeQueue::next() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [&] { return !waiting_.empty(); })) {
    throw std::runtime_error("no request comes");
  }
  auto exchange = std::move(waiting_.front());
  waiting_.pop_front();
  return exchange;
}

ServedRequest ServedQueue::next() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [&] { return !waiting_.empty(); })) {
    throw std::runtime_error("no request is over");
  }
  ServedRequest request = std::move(waiting_.front());
  waiting_.pop_front();
  return request;
}

bool Flag::wait() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return count_ > 0; });
}

HttpServerOptions local_options() {
  HttpServerOptions options;
  options.port = 0;
  return options;
}

void echo(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  exchange->respond(
      plain(request.method + " " + request.path + " [" + request.query + "] " + request.body));
}

std::string get_request(std::string_view path, std::string_view more_headers) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(more_headers) +
         "\r\n";
}

std::string ask(uint16_t port, std::string_view bytes) {
  RawSocket socket(port);
  socket.send(bytes);
  return socket.read_answer();
}

HttpResponse plain(std::string body) { return text_response(200, "text/plain", std::move(body)); }

}  // namespace trtmc
