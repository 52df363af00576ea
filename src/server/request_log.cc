#include "server/request_log.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"

namespace trtmc {
namespace {

constexpr size_t kLongestPath = 512;

// What a client has chosen must not look like a line or a field of its own.
std::string word(std::string_view text) {
  std::string shown;
  for (const char byte : text.substr(0, kLongestPath)) {
    if (byte > ' ' && byte < '\x7f') {
      shown += byte;
    } else {
      shown += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    }
  }
  return shown.empty() ? "-" : shown;
}

std::string json_line(const ServedRequest& request) {
  Json json;
  json.set("time", utc_text(request.start));
  json.set("id", request.id);
  json.set("client", request.client);
  json.set("method", word(request.method));
  json.set("path", word(request.path));
  json.set("status", request.status);
  json.set("bytes", static_cast<int64_t>(request.bytes));
  json.set("duration_ms", std::round(request.duration_ms * 1000) / 1000);
  json.set("complete", request.complete);
  if (!request.model.empty()) json.set("model", replace_invalid_utf8(request.model));
  if (request.prompt_tokens) json.set("prompt_tokens", *request.prompt_tokens);
  if (request.completion_tokens) json.set("completion_tokens", *request.completion_tokens);
  return json.dump();
}

}  // namespace

std::string request_line(const ServedRequest& request, RequestLogFormat format) {
  if (format == RequestLogFormat::kJson) return json_line(request);
  const std::string tokens =
      request.prompt_tokens && request.completion_tokens
          ? fmt::format("{}+{}", *request.prompt_tokens, *request.completion_tokens)
          : "-";
  return fmt::format("{} {} {} {} {} {}B{} {:.1f}ms {} {} {}", utc_text(request.start),
                     word(request.client), word(request.method), word(request.path), request.status,
                     request.bytes, request.complete ? "" : " cut", request.duration_ms,
                     word(request.model), tokens, word(request.id));
}

}  // namespace trtmc
