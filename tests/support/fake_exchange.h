// A request that came from no connection, and what was answered to it: for tests of routes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "server/exchange.h"

namespace trtmc {

inline HttpRequest request_of(std::string method, std::string path, std::string body = {}) {
  return {.method = std::move(method),
          .path = std::move(path),
          .query = {},
          .headers = {},
          .body = std::move(body),
          .client = "test",
          .id = "request-1"};
}

// Answers twice or in the wrong order are failures of the test.
class FakeExchange final : public Exchange {
 public:
  explicit FakeExchange(HttpRequest request) : Exchange(std::move(request)) {}
  FakeExchange(std::string method, std::string path, std::string body = {})
      : FakeExchange(request_of(std::move(method), std::move(path), std::move(body))) {}

  void respond(HttpResponse response) override {
    change([&] { begin(std::move(response), true); });
  }
  void start_stream(HttpResponse head) override {
    change([&] {
      if (!head.body.empty()) pieces_.push_back(head.body);
      begin(std::move(head), false);
    });
  }
  void write(std::string bytes) override {
    change([&] {
      EXPECT_TRUE(head_ && !ended_) << "a piece outside a stream";
      pieces_.push_back(std::move(bytes));
    });
  }
  void end_stream() override {
    change([&] {
      EXPECT_TRUE(head_ && !ended_) << "the end of no stream";
      ended_ = true;
    });
  }
  void fail_for_memory() noexcept override {
    change([&] {
      if (!head_) head_.emplace().status = 503;
      ended_ = lacked_memory_ = true;
    });
  }
  void on_gone(std::function<void()> action) override {
    std::unique_lock lock(mutex_);
    on_gone_ = std::move(action);
    if (is_gone_ && on_gone_) call_on_gone(lock);
  }

  bool is_gone() const override {
    const std::lock_guard lock(mutex_);
    return is_gone_;
  }

  // The client goes; what is sent from now on is lost, as on a real connection.
  void leave() {
    std::unique_lock lock(mutex_);
    is_gone_ = true;
    if (on_gone_) call_on_gone(lock);
  }

  // What was answered, once it is complete; of a stream its head, with all pieces as the body.
  HttpResponse await() {
    std::unique_lock lock(mutex_);
    if (!await_until(lock, [&] { return ended_; })) return {.status = 0, .headers = {}, .body = {}};
    HttpResponse whole = *head_;
    if (is_stream_) whole.body.clear();
    for (const std::string& piece : pieces_) whole.body += piece;
    return whole;
  }
  // The pieces of a stream, once there are `count` or it has ended.
  std::vector<std::string> await_pieces(size_t count) {
    std::unique_lock lock(mutex_);
    await_until(lock, [&] { return ended_ || pieces_.size() >= count; });
    return pieces_;
  }
  bool lacked_memory() {
    const std::lock_guard lock(mutex_);
    return lacked_memory_;
  }
  bool is_stream() {
    const std::lock_guard lock(mutex_);
    return is_stream_;
  }

  // The same, each once it is complete.
  HttpResponse response() { return await(); }
  int status() { return await().status; }
  Json json() { return Json::parse(await().body); }
  std::vector<std::string> pieces() { return await_pieces(std::numeric_limits<size_t>::max()); }

  // What stands behind "data: " of each event of a stream.
  std::vector<std::string> events() {
    std::vector<std::string> result;
    for (std::string piece : pieces()) {
      if (!piece.starts_with("data: ") || !piece.ends_with("\n\n")) {
        throw std::runtime_error("no event: " + piece);
      }
      piece = piece.substr(6, piece.size() - 8);
      if (piece.find('\n') != piece.npos) throw std::runtime_error("two lines: " + piece);
      result.push_back(std::move(piece));
    }
    return result;
  }

 private:
  template <typename Change>
  void change(Change&& apply) {
    const std::lock_guard lock(mutex_);
    if (is_gone_) return;
    apply();
    changed_.notify_all();
  }
  void begin(HttpResponse head, bool is_whole) {
    EXPECT_FALSE(head_) << "a second answer";
    head_ = std::move(head);
    is_stream_ = !is_whole;
    ended_ = is_whole;
  }
  template <typename Condition>
  bool await_until(std::unique_lock<std::mutex>& lock, Condition&& condition) {
    // Long enough for an emulated processor that others use as well.
    const bool came = changed_.wait_for(lock, std::chrono::minutes(20), condition);
    EXPECT_TRUE(came) << request().path << ": no answer";
    return came;
  }
  void call_on_gone(std::unique_lock<std::mutex>& lock) {
    const auto action = std::exchange(on_gone_, {});
    lock.unlock();
    action();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<HttpResponse> head_;
  std::vector<std::string> pieces_;
  std::function<void()> on_gone_;
  bool is_stream_ = false, ended_ = false, is_gone_ = false, lacked_memory_ = false;
};

}  // namespace trtmc
