#include "server/http_message.h"

#include "base/ascii.h"

namespace trtmc {
namespace {

int hexadecimal(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::optional<std::string_view> HttpHeaders::find(std::string_view name) const {
  for (const auto& [key, value] : list_) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return std::nullopt;
}

HttpResponse json_response(int status, const Json& json) {
  return text_response(status, "application/json", json.dump());
}

HttpResponse text_response(int status, std::string_view content_type, std::string body) {
  HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", std::string(content_type));
  response.body = std::move(body);
  return response;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const bool whole = text.size() - i > 2;
    const int high = whole ? hexadecimal(text[i + 1]) : -1;
    const int low = whole ? hexadecimal(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

}  // namespace trtmc
