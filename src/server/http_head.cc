#include "server/http_head.h"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/ascii.h"

namespace trtmc {
namespace {

// RFC 9110, 15.
std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

void add_header(std::string& head, std::string_view name, std::string_view value) {
  head += name;
  head += ": ";
  std::copy_if(value.begin(), value.end(), std::back_inserter(head),
               [](char byte) { return byte != '\r' && byte != '\n' && byte != '\0'; });
  head += "\r\n";
}

bool has_length(int status) { return status >= 200 && status != 204 && status != 304; }

bool is_listed(const std::vector<std::string>& origins, std::string_view origin) {
  return std::any_of(origins.begin(), origins.end(),
                     [&](const std::string& listed) { return listed == "*" || listed == origin; });
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// "a:80" as "a", "[::1]:80" as "::1".
std::string_view without_port(std::string_view authority) {
  if (!authority.starts_with('[')) return authority.substr(0, authority.find(':'));
  return authority.substr(1, authority.find(']') - 1);
}

bool is_address(std::string_view host) {
  const std::string text(host);
  in6_addr parsed{};
  return inet_pton(AF_INET, text.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &parsed) == 1;
}

// A list of names of headers.
bool is_name_list(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == ',' || c == ' ';
  });
}

}  // namespace

std::string http_head(const HttpResponse& response, const AnswerFraming& framing,
                      const HttpHeaders& more) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
  for (const auto& [name, value] : response.headers) add_header(head, name, value);
  for (const auto& [name, value] : more) add_header(head, name, value);
  add_header(head, "Date",
             fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr))));
  if (framing.in_chunks()) {
    add_header(head, "Transfer-Encoding", "chunked");
  } else if (!framing.is_stream && has_length(response.status)) {
    add_header(head, "Content-Length", std::to_string(response.body.size()));
  }
  if (!framing.keeps_alive) {
    add_header(head, "Connection", "close");
  } else if (framing.is_http_1_0) {
    add_header(head, "Connection", "keep-alive");
  }
  return head + "\r\n";
}

std::string http_chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

bool is_request_id(std::string_view text) {
  constexpr size_t kLongest = 128;
  return !text.empty() && text.size() <= kLongest &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter_or_digit(c) ||
                  std::string_view("-._:/+=").find(c) != std::string_view::npos;
         });
}

bool is_foreign_page(const std::vector<std::string>& origins, std::string_view own_host,
                     const HttpRequest& request) {
  const auto origin = request.headers.find("Origin");
  if (!origin || is_listed(origins, *origin)) return false;
  const size_t scheme = origin->find("://");
  const auto host = request.headers.find("Host");
  if (scheme == origin->npos || !host) return true;
  if (!equal_ignoring_case(origin->substr(scheme + 3), *host)) return true;
  // A name may be anybody's, and lead here all the same; an address is nobody else's.
  const std::string_view name = without_port(*host);
  return !is_address(name) && !equal_ignoring_case(name, "localhost") &&
         !equal_ignoring_case(name, own_host);
}

HttpHeaders cors_headers(const std::vector<std::string>& origins, const HttpRequest& request) {
  const auto origin = request.headers.find("Origin");
  HttpHeaders headers;
  if (origins.empty()) return headers;
  headers.add("Vary", "Origin");
  if (!origin || !is_listed(origins, *origin)) return headers;
  headers.add("Access-Control-Allow-Origin", std::string(*origin));
  headers.add("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  return headers;
}

std::optional<HttpResponse> cors_preflight(const std::vector<std::string>& origins,
                                           const HttpRequest& request) {
  const auto origin = request.headers.find("Origin");
  if (request.method != "OPTIONS" || !origin || !is_listed(origins, *origin) ||
      !request.headers.find("Access-Control-Request-Method")) {
    return std::nullopt;
  }
  HttpResponse response{.status = 204, .headers = {}, .body = {}};
  response.headers.add("Access-Control-Allow-Methods", "GET, POST");
  const auto names = request.headers.find("Access-Control-Request-Headers");
  if (names && is_name_list(*names)) {
    response.headers.add("Access-Control-Allow-Headers", std::string(*names));
  }
  response.headers.add("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace trtmc
