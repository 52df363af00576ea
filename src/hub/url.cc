#include "hub/url.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace trtmc {
namespace {

using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

UrlHandle parsed(const std::string& text) {
  UrlHandle url(curl_url(), &curl_url_cleanup);
  if (!url || text.find('\0') != text.npos) return {nullptr, &curl_url_cleanup};
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) url.reset();
  return url;
}

std::optional<std::string> part(CURLU* url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, &curl_free);
  return std::string(text);
}

bool is_web(CURLU* url) {
  const auto scheme = part(url, CURLUPART_SCHEME);
  return scheme == "https" || scheme == "http";
}

}  // namespace

std::optional<std::string> resolve_url(const std::string& base, const std::string& location) {
  const UrlHandle url = parsed(base);
  if (!url || location.find('\0') != location.npos) return {};
  if (curl_url_set(url.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK) return {};
  if (!is_web(url.get())) return {};
  return part(url.get(), CURLUPART_URL);
}

std::optional<std::string> url_origin(const std::string& text) {
  const UrlHandle url = parsed(text);
  if (!url || !is_web(url.get())) return {};
  auto host = part(url.get(), CURLUPART_HOST);
  const auto port = part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (!host || !port) return {};
  std::transform(host->begin(), host->end(), host->begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return fmt::format("{}://{}:{}", *part(url.get(), CURLUPART_SCHEME), *host, *port);
}

std::string escape_url(std::string_view text, std::string_view also) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~' || also.find(c) != also.npos;
    if (plain) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return escaped;
}

}  // namespace trtmc
