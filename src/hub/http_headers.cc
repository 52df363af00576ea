#include "hub/http_headers.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace trtmc {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return result;
}

}  // namespace

void read_header_line(std::string_view line, FetchResponse& response) {
  if (line.starts_with("HTTP/")) {
    response = {};
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string_view rest = trimmed(line.substr(blank));
    std::from_chars(rest.data(), rest.data() + rest.size(), response.status);
    return;
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return;
  response.headers[lower(trimmed(line.substr(0, colon)))] = trimmed(line.substr(colon + 1));
}

}  // namespace trtmc
