// What clients are told when a request fails: OpenAI's error object and its status.
#pragma once

#include <exception>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "server/http_message.h"

namespace trtmc {

struct ApiError {
  int status = 500;
  std::string message{};
  std::string type{};   // "invalid_request_error", "authentication_error", "rate_limit_error", …
  std::string param{};  // The request's field, "messages[0].role"; empty: null.
  std::string code{};   // "model_not_found"; empty: null.
};

// A prompt that leaves no room for an answer: clients look for its code, and shorten the prompt.
class ContextLengthError : public FieldError {
 public:
  // `field`: what the prompt came from. `tokens`: in it; `context`: there may be.
  ContextLengthError(std::string field, size_t tokens, int context);
};

// Of an error that a handler met: what is wrong with the request is 400 (404 for kNotFound), a full
// queue is 429, no memory 503, the rest is 500.
ApiError api_error(const Error& error);

// The same for the client of `request`. What is not its fault, status 500, goes to the log; the
// client is told the request's id, by which it is found there.
ApiError told_error(const Error& error, const HttpRequest& request);

// Of an answer that ends since the server does.
ApiError cut_off_error();

// {"error": {"message", "type", "param", "code"}}
Json to_json(const ApiError& error);

// With Retry-After if the client may try again.
HttpResponse error_response(const ApiError& error);

}  // namespace trtmc
