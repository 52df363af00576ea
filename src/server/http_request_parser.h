// The bytes of a connection as requests. The only user of Beast, whose parser this bounds and makes
// as strict as the specification (RFC 9112).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "server/api_error.h"
#include "server/http_message.h"

namespace trtmc {

struct ParsedRequest {
  HttpRequest request;  // Without client and id.
  bool is_http_1_0 = false;
  bool keeps_alive = true;        // The client wants to send more on the same connection.
  bool expects_continue = false;  // It waits for a "100 Continue" before it sends the body.
};

// One request. Another one needs another parser.
class HttpRequestParser {
 public:
  enum class State {
    kHead,    // More bytes are needed; the headers are not complete.
    kBody,    // The headers are complete, the body is not.
    kDone,    // parsed() is whole; what follows belongs to the next request.
    kFailed,  // error(); nothing is known of what follows.
  };

  HttpRequestParser(size_t max_header_bytes, size_t max_body_bytes);
  ~HttpRequestParser();
  HttpRequestParser(HttpRequestParser&&) noexcept;
  HttpRequestParser& operator=(HttpRequestParser&&) noexcept;

  // How many bytes of `bytes` have been taken. The others come again in the next call, with more
  // after them. Stops where the headers end, so that the caller may answer "100 Continue".
  size_t take(std::string_view bytes);

  State state() const;
  // In kHead and kBody: bytes that a caller must be able to hold. If so many have come and none is
  // taken, give_up() has the fitting error.
  size_t longest_element() const;
  void give_up();

  ParsedRequest& parsed();        // Whole in kDone, its head in kBody, what came of it in kFailed.
  const ApiError& error() const;  // In kFailed: 400, 413, 417, 431, 501 or 505.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trtmc
