#include "hub/hub_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "base/error.h"
#include "base/file.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxTokenBytes = 64 << 10;
constexpr int kMaxTimeoutS = 86400;

// As huggingface_hub: anything but these four is false.
bool is_true(const std::optional<std::string>& value) {
  if (!value) return false;
  std::string upper = *value;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  constexpr std::array<std::string_view, 4> kTrue = {"1", "ON", "YES", "TRUE"};
  return std::find(kTrue.begin(), kTrue.end(), upper) != kTrue.end();
}

std::string trimmed(std::string text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.erase(text.find_last_not_of(kBlanks) + 1);
  text.erase(0, std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

// "~" and "~/…" below the home folder.
fs::path expanded(const Environment& environment, const std::string& text) {
  if (text != "~" && !text.starts_with("~/")) return text;
  const auto home = environment("HOME");
  return home ? fs::path(*home + text.substr(1)) : fs::path(text);
}

fs::path hub_home(const Environment& environment) {
  if (const auto home = environment("HF_HOME")) return expanded(environment, *home);
  if (const auto cache = environment("XDG_CACHE_HOME")) {
    return expanded(environment, *cache) / "huggingface";
  }
  if (const auto home = environment("HOME")) return fs::path(*home) / ".cache" / "huggingface";
  throw Error(ErrorCode::kNotFound, "HOME is not set, and no folder for the hub's cache is named",
              "set HF_HOME to a folder");
}

// A token travels in a header, where a line break would begin another one.
std::string checked_token(std::string token, std::string_view where) {
  token = trimmed(std::move(token));
  const bool visible =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (visible) return token;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: a token with blanks or characters outside ASCII", where));
}

std::string read_token(const Environment& environment) {
  if (is_true(environment("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return {};
  for (const char* const name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (const auto token = environment(name)) return checked_token(*token, name);
  }
  const auto named = environment("HF_TOKEN_PATH");
  const fs::path path = named ? expanded(environment, *named) : hub_home(environment) / "token";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  return checked_token(read_file(path, kMaxTokenBytes), path.string());
}

std::string read_endpoint(const Environment& environment) {
  const auto value = environment("HF_ENDPOINT");
  if (!value) return HubSettings{}.endpoint;
  std::string endpoint = trimmed(*value);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (endpoint.starts_with("https://") || endpoint.starts_with("http://")) return endpoint;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("HF_ENDPOINT: \"{}\", expected https://HOST", *value));
}

int read_timeout(const Environment& environment) {
  const auto value = environment("HF_HUB_DOWNLOAD_TIMEOUT");
  if (!value) return HubSettings{}.stall_timeout_s;
  int seconds = 0;
  const char* const end = value->data() + value->size();
  const auto [last, error] = std::from_chars(value->data(), end, seconds);
  if (error == std::errc() && last == end && seconds >= 1 && seconds <= kMaxTimeoutS) {
    return seconds;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("HF_HUB_DOWNLOAD_TIMEOUT: \"{}\", expected seconds, 1 to {}", *value,
                          kMaxTimeoutS));
}

}  // namespace

std::filesystem::path hub_cache_folder(const Environment& environment) {
  for (const char* const name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto cache = environment(name)) return expanded(environment, *cache);
  }
  return hub_home(environment) / "hub";
}

HubSettings read_hub_settings(const Environment& environment) {
  return {.endpoint = read_endpoint(environment),
          .token = read_token(environment),
          .cache = hub_cache_folder(environment),
          .offline = is_true(environment("HF_HUB_OFFLINE")) ||
                     is_true(environment("TRANSFORMERS_OFFLINE")),
          .symlinks = !is_true(environment("HF_HUB_DISABLE_SYMLINKS")),
          .progress = !is_true(environment("HF_HUB_DISABLE_PROGRESS_BARS")),
          .stall_timeout_s = read_timeout(environment)};
}

}  // namespace trtmc
