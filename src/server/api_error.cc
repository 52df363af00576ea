#include "server/api_error.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "engine/engine.h"

namespace trtmc {
namespace {

struct Kind {
  int status;
  const char* type;
};

Kind kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      return {400, "invalid_request_error"};
    case ErrorCode::kNotFound:
      return {404, "invalid_request_error"};
    case ErrorCode::kExhausted:
      return {503, "server_error"};
    case ErrorCode::kCorrupt:
    case ErrorCode::kInternal:
      break;
  }
  return {500, "server_error"};
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

// What a request has said is quoted, and may be as long as a request.
std::string shortened(const std::string& message) {
  constexpr size_t kMost = 1000;
  if (message.size() <= kMost) return message;
  size_t end = kMost;
  while ((message[end] & 0xC0) == 0x80) --end;  // No half of a code point.
  return message.substr(0, end) + "\u2026";
}

}  // namespace

ContextLengthError::ContextLengthError(std::string field, size_t tokens, int context)
    : FieldError(ErrorCode::kInvalidArgument, std::move(field),
                 fmt::format("{} tokens leave no room for an answer in a context of {}", tokens,
                             context)) {}

ApiError api_error(const Error& error) {
  const bool is_queue_full = dynamic_cast<const QueueFullError*>(&error) != nullptr;
  const Kind kind = is_queue_full ? Kind{429, "rate_limit_error"} : kind_of(error.code());
  ApiError result{.status = kind.status, .message = error.what(), .type = kind.type};
  if (!error.hint().empty()) result.message += "; " + error.hint();
  if (const auto* field = dynamic_cast<const FieldError*>(&error)) result.param = field->field();
  if (error.code() == ErrorCode::kNotFound && result.param == "model") {
    result.code = "model_not_found";
  }
  if (dynamic_cast<const ContextLengthError*>(&error)) result.code = "context_length_exceeded";
  return result;
}

ApiError told_error(const Error& error, const HttpRequest& request) {
  ApiError result = api_error(error);
  if (result.status != 500) return result;
  log_error("{}: {}", request.id, result.message);
  result.message = fmt::format("the server failed; its log says why, for {}", request.id);
  return result;
}

ApiError cut_off_error() {
  return {.status = 503,
          .message = "the answer was cut off, since the server stops",
          .type = "server_error"};
}

Json to_json(const ApiError& error) {
  Json inner;
  inner.set("message", shortened(error.message));
  inner.set("type", error.type);
  inner.set("param", or_null(shortened(error.param)));
  inner.set("code", or_null(error.code));
  Json json;
  json.set("error", std::move(inner));
  return json;
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response = json_response(error.status, to_json(error));
  if (error.status == 429 || error.status == 503) response.headers.add("Retry-After", "1");
  return response;
}

}  // namespace trtmc
