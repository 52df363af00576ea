// An answer as a stream of events: https://html.spec.whatwg.org/multipage/server-sent-events.html,
// as OpenAI's clients read it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/exchange.h"

namespace trtmc {

// The event that ends a stream which is not complete.
std::string error_event(const ApiError& error);

class EventStream {
 public:
  explicit EventStream(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  // Sends status and headers.
  void start();
  // One event. `data` has no line breaks, as JSON has none.
  void send(std::string_view data);
  // The end of a stream that is complete: "[DONE]".
  void end();
  // The end of one that is not: an event with the error, and no "[DONE]"; the error alone as the
  // answer if the stream has not been started.
  void fail(const ApiError& error);

 private:
  std::shared_ptr<Exchange> exchange_;
  bool has_started_ = false;
};

}  // namespace trtmc
