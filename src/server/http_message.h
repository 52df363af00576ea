// An HTTP request and its answer as values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace trtmc {

class HttpHeaders {
 public:
  HttpHeaders() = default;
  HttpHeaders(std::initializer_list<std::pair<std::string, std::string>> list) : list_(list) {}

  // The value of the first header of that name, whose case does not matter.
  std::optional<std::string_view> find(std::string_view name) const;
  void add(std::string name, std::string value) {
    list_.emplace_back(std::move(name), std::move(value));
  }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

struct HttpRequest {
  std::string method;  // "POST"
  std::string path;    // Without the query, as sent: "/v1/models/a%2Fb".
  std::string query;   // After the "?"; may be empty.
  HttpHeaders headers;
  std::string body;
  std::string client;  // Address of the other side, for the log.
  std::string id;      // X-Request-Id, the client's if it is one, else made here.
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;  // With Content-Type; what HTTP itself needs is added when it is sent.
  std::string body;
};

HttpResponse json_response(int status, const Json& json);
HttpResponse text_response(int status, std::string_view content_type, std::string body);

// "a%2Fb" as "a/b". Nothing if a "%" is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace trtmc
