// The head of an answer, as it is sent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http_message.h"

namespace trtmc {

// How the other side learns where the answer ends.
struct AnswerFraming {
  bool is_http_1_0 = false;  // Of the request.
  bool has_body = true;      // False: for HEAD.
  bool is_stream = false;    // The length is not known.
  bool keeps_alive = true;

  bool in_chunks() const { return is_stream && has_body && !is_http_1_0; }
};

// Status line and headers with the empty line: the answer's own, those of `more`, and what HTTP
// needs. Bytes that would end a header are left out.
std::string http_head(const HttpResponse& response, const AnswerFraming& framing,
                      const HttpHeaders& more);

// `bytes`, not empty, as a chunk of a body in chunks.
std::string http_chunk(std::string_view bytes);
inline constexpr std::string_view kLastHttpChunk = "0\r\n\r\n";
inline constexpr std::string_view kHttpContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// X-Request-Id as a client may choose it: up to 128 letters, digits and "-._:/+=".
bool is_request_id(std::string_view text);

// Whether a page sends `request` that is neither of `origins` ("*": all) nor of the server itself,
// which a browser lets every page do as long as it does not look at the answer. The server itself
// is an address, "localhost" or `own_host`: whoever owns another name may have it lead here for a
// page of that name to look at the answer too ("DNS rebinding").
bool is_foreign_page(const std::vector<std::string>& origins, std::string_view own_host,
                     const HttpRequest& request);

// For pages of `origins` in browsers: what is added to an answer to `request`, and the answer to a
// browser's question whether it may ask ("preflight").
HttpHeaders cors_headers(const std::vector<std::string>& origins, const HttpRequest& request);
std::optional<HttpResponse> cors_preflight(const std::vector<std::string>& origins,
                                           const HttpRequest& request);

}  // namespace trtmc
