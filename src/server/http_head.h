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

// X-Request-Id as a client may choose it: up to 128 letters, digits and "-._:/+=".
bool is_request_id(std::string_view text);

// For pages of `origins` ("*": of all) in browsers: what is added to an answer to `request`, and
// the answer to a browser's question whether it may ask ("preflight").
// Whether a page that is neither of these nor of the server's own host sends `request`, which a
// browser lets every page do as long as it does not look at the answer.
bool is_foreign_page(const std::vector<std::string>& origins, const HttpRequest& request);
HttpHeaders cors_headers(const std::vector<std::string>& origins, const HttpRequest& request);
std::optional<HttpResponse> cors_preflight(const std::vector<std::string>& origins,
                                           const HttpRequest& request);

}  // namespace trtmc
