#include "server/sse.h"

#include <fmt/format.h>

namespace trtmc {

std::string as_event(std::string_view data) { return fmt::format("data: {}\n\n", data); }

void EventStream::start() {
  HttpResponse head = text_response(200, "text/event-stream", {});
  head.headers.add("Cache-Control", "no-cache");
  head.headers.add("X-Accel-Buffering", "no");  // Proxies like nginx would collect events.
  exchange_->start_stream(std::move(head));
}

void EventStream::send(std::string_view data) { exchange_->write(as_event(data)); }

void EventStream::end() {
  send("[DONE]");
  exchange_->end_stream();
}

void EventStream::fail(const ApiError& error) {
  send(to_json(error).dump());
  exchange_->end_stream();
}

}  // namespace trtmc
