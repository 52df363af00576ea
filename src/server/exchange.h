// One request and the way back to whoever sent it. From any thread; calls after the end, or once
// the client is gone, do nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/http_message.h"

namespace trtmc {

class Exchange {
 public:
  // `body_hold` goes when the body does.
  explicit Exchange(HttpRequest request, std::shared_ptr<void> body_hold = {})
      : request_(std::move(request)), body_hold_(std::move(body_hold)) {}
  virtual ~Exchange() = default;  // If nothing has been sent: status 500.
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const { return request_; }
  // The body, which the request is without from then on: it need not wait for the answer's end.
  // For whoever handles the request, on one thread.
  std::string take_body() {
    body_hold_.reset();
    return std::exchange(request_.body, {});
  }

  // The whole answer. Either this, once, or the three below.
  virtual void respond(HttpResponse response) = 0;

  // Status and headers of an answer in pieces; the body is its first piece.
  virtual void start_stream(HttpResponse head) = 0;
  // The next piece, at once. A client that reads too slowly for what waits to be sent is cut off.
  virtual void write(std::string bytes) = 0;
  virtual void end_stream() = 0;

  // Instead of what is left: there was no memory to make it. 503, or the last event of a stream.
  // Needs no memory itself.
  virtual void fail_for_memory() noexcept = 0;

  // `action` is called once if the client goes before the end, or is cut off: at once if it has
  // been already. It must be quick. Setting another forgets the first.
  virtual void on_gone(std::function<void()> action) = 0;

  virtual bool is_gone() const { return false; }  // The client, or it has been cut off.

  // For the log of requests; before the answer's end. The route is its pattern.
  virtual void note_route(std::string_view pattern) { (void)pattern; }
  virtual void note_model(std::string_view name) { (void)name; }
  virtual void note_tokens(int prompt, int completion) { (void)prompt, (void)completion; }

 private:
  HttpRequest request_;
  std::shared_ptr<void> body_hold_;
};

}  // namespace trtmc
