// A client without a socket: what it asked, and what it was sent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "server/exchange.h"

namespace trtmc {

class FakeExchange final : public Exchange {
 public:
  using Exchange::Exchange;
  FakeExchange(std::string method, std::string path, std::string body = {})
      : Exchange({.method = std::move(method),
                  .path = std::move(path),
                  .query = {},
                  .headers = {},
                  .body = std::move(body),
                  .client = {},
                  .id = {}}) {}

  void respond(HttpResponse response) override {
    set([&] {
      head_ = std::move(response);
      ended_ = true;
    });
  }
  void start_stream(HttpResponse head) override {
    set([&] { head_ = std::move(head); });
  }
  void write(std::string bytes) override {
    set([&] { pieces_.push_back(std::move(bytes)); });
  }
  void end_stream() override {
    set([&] { ended_ = true; });
  }
  void on_gone(std::function<void()> action) override {
    set([&] { gone_ = std::move(action); });
  }

  // The client goes away.
  void leave() {
    std::function<void()> action;
    set([&] { action = std::exchange(gone_, {}); });
    if (action) action();
  }

  // Waits for `count` pieces of a stream, or its end.
  void await_pieces(size_t count) {
    wait([&] { return pieces_.size() >= count; });
  }
  // Wait for the end of the answer.
  HttpResponse response() {
    wait([] { return false; });
    return head_;
  }
  std::vector<std::string> pieces() {
    wait([] { return false; });
    return pieces_;
  }

  int status() { return response().status; }
  Json json() { return Json::parse(response().body); }

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
  template <typename Action>
  void set(Action&& action) {
    const std::lock_guard lock(mutex_);
    std::forward<Action>(action)();
    changed_.notify_all();
  }

  // Until `holds` or the answer's end.
  template <typename Condition>
  void wait(Condition&& holds) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(100), [&] { return ended_ || holds(); });
    if (!came) throw std::runtime_error("no answer came");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  HttpResponse head_;
  std::vector<std::string> pieces_;
  bool ended_ = false;
  std::function<void()> gone_;
};

}  // namespace trtmc
