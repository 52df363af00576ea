#include "server/api_keys.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <string>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace trtmc {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;
constexpr std::string_view kScheme = "Bearer ";

bool is_visible(char byte) { return byte > ' ' && byte < '\x7f'; }

void warn_of_readers(const std::filesystem::path& file) {
  using std::filesystem::perms;
  std::error_code unknown;
  const perms granted = std::filesystem::status(file, unknown).permissions();
  if (unknown || (granted & perms::others_read) == perms::none) return;
  log_warning("{}: other users may read the keys; chmod o-r keeps them out", file.string());
}

}  // namespace

ApiKeys::ApiKeys(const std::filesystem::path& file) {
  const std::string text = read_file(file, kMaxFileBytes);
  warn_of_readers(file);
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty() || line.front() == '#') continue;
    if (!std::all_of(line.begin(), line.end(), is_visible)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: line {} is no key: it has more than visible ASCII characters",
                              file.string(), number));
    }
    digests_.push_back(sha256(as_bytes(line)));
  }
  if (digests_.empty()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: no key in it", file.string()),
                "put one on each line");
  }
}

bool ApiKeys::has(std::string_view key) const {
  // The digests hide lengths and where a guess begins to differ.
  const Sha256Digest digest = sha256(as_bytes(key));
  bool found = false;
  for (const Sha256Digest& known : digests_) {
    found |= CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0;
  }
  return found;
}

bool ApiKeys::let_in(const HttpRequest& request) const {
  if (digests_.empty()) return true;
  const auto credentials = request.headers.find("Authorization");
  if (credentials && equal_ignoring_case(credentials->substr(0, kScheme.size()), kScheme)) {
    return has(trimmed(credentials->substr(kScheme.size())));
  }
  // Another scheme is for somebody between here and the client.
  const auto key = request.headers.find("x-api-key");
  return key && has(*key);
}

}  // namespace trtmc
