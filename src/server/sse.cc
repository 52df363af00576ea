#include "server/sse.h"

#include <fmt/format.h>

namespace trtmc {
namespace {

std::string event(std::string_view data) { return fmt::format("data: {}\n\n", data); }

}  // namespace

std::string error_event(const ApiError& error) { return event(to_json(error).dump()); }

void EventStream::start() {
  HttpResponse head = text_response(200, "text/event-stream", {});
  head.headers.add("Cache-Control", "no-cache");
  head.headers.add("X-Accel-Buffering", "no");  // Proxies like nginx would collect events.
  exchange_->start_stream(std::move(head));
  has_started_ = true;
}

void EventStream::send(std::string_view data) { exchange_->write(event(data)); }

void EventStream::end() {
  send("[DONE]");
  exchange_->end_stream();
}

void EventStream::fail(const ApiError& error) {
  if (!has_started_) return exchange_->respond(error_response(error));
  exchange_->write(error_event(error));
  exchange_->end_stream();
}

}  // namespace trtmc
