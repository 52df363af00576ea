#include "hub/hub_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "hub/url.h"

namespace trtmc {
namespace {

constexpr int kMaxRedirects = 10;
constexpr size_t kMaxIgnoredBytes = 64 << 10;  // Of a body that nobody wants.
constexpr size_t kMaxShownBytes = 200;

bool is_success(int status) { return status == 200 || status == 206; }

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_transient(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

// What a server says, cut and without what a terminal could obey.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, kMaxShownBytes));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

}  // namespace

HubConnection::HubConnection(std::unique_ptr<Transport> transport, std::string endpoint,
                             std::string token, std::stop_token stop)
    : transport_(std::move(transport)),
      endpoint_(std::move(endpoint)),
      token_(std::move(token)),
      stop_(std::move(stop)) {
  const auto origin = url_origin(endpoint_);
  if (!origin) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("HF_ENDPOINT: \"{}\", expected https://HOST", endpoint_));
  }
  origin_ = *origin;
}

FetchResponse HubConnection::get(const std::string& path, std::optional<Range> range,
                                 const BodySink& sink) {
  FetchRequest request{endpoint_ + path, {}, {}, {}};
  if (range) {
    request.first = range->first;
    request.last = range->last;
  }
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    request.token = url_origin(request.url) == origin_ ? token_ : "";
    FetchResponse response = exchange(request, sink);
    if (is_success(response.status)) return response;
    if (!is_redirect(response.status)) refuse(response);
    request.url = redirected(request.url, response);
  }
  throw Error(ErrorCode::kCorrupt,
              fmt::format("the server redirects more than {} times", kMaxRedirects));
}

FetchResponse HubConnection::exchange(const FetchRequest& request, const BodySink& sink) {
  size_t ignored = 0;
  const BodySink only_success = [&](const FetchResponse& response,
                                    std::span<const std::byte> bytes) {
    if (is_success(response.status)) return sink(response, bytes);
    ignored += bytes.size();
    return ignored <= kMaxIgnoredBytes;
  };
  try {
    return transport_->get(request, only_success, stop_);
  } catch (const TransientFailure& failure) {
    if (stop_.stop_requested()) throw DownloadStopped();
    const std::string host = url_origin(request.url).value_or(request.url);
    throw TransientFailure{fmt::format("{}: {}", host, failure.reason), failure.retry_after_s,
                           failure.unreachable};
  }
}

std::string HubConnection::redirected(const std::string& url, const FetchResponse& response) const {
  const std::string location = response.header("location");
  const auto next = location.empty() ? std::nullopt : resolve_url(url, location);
  if (!next || !url_origin(*next)) {
    throw Error(
        ErrorCode::kCorrupt,
        fmt::format("the server redirects to \"{}\", expected a web address", shown(location)));
  }
  if (origin_.starts_with("https:") && !next->starts_with("https:")) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("the server redirects from https to {}, which is not encrypted",
                            shown(*url_origin(*next))));
  }
  return *next;
}

void HubConnection::refuse(const FetchResponse& response) const {
  const int status = response.status;
  const std::string code = response.header("x-error-code");
  if (is_transient(status)) {
    throw TransientFailure{status == 429 ? "the server has had too many requests (429)"
                                         : fmt::format("the server is in trouble ({})", status),
                           response.retry_after_s};
  }
  if (code == "RevisionNotFound") {
    throw Error(ErrorCode::kNotFound, "no such revision",
                "a revision is a branch, a tag or a commit");
  }
  if (code == "EntryNotFound") throw Error(ErrorCode::kNotFound, "no such file");
  if (code == "GatedRepo" || status == 403) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("access is granted to certain users only ({})", status),
                token_.empty() ? "ask for access on the model's page, then set HF_TOKEN"
                               : "ask for access on the model's page, as the user of this token");
  }
  if (status == 401 && token_.empty()) {
    throw Error(ErrorCode::kNotFound, "no such model, or one that needs a token (401)",
                "check the name; for a private or gated model set HF_TOKEN");
  }
  if (status == 401) {
    throw Error(ErrorCode::kInvalidArgument,
                "no such model for this token, or the token is not "
                "valid (401)",
                "check the name, HF_TOKEN and the token file");
  }
  if (status == 404) throw Error(ErrorCode::kNotFound, "no such model (404)", "check the name");
  const std::string said = response.header("x-error-message");
  throw Error(
      status == 416 ? ErrorCode::kCorrupt : ErrorCode::kNotFound,
      fmt::format("the server answers {}{}{}", status, said.empty() ? "" : ": ", shown(said)));
}

std::string HubConnection::get_text(const std::string& path, size_t max_bytes,
                                    const RetryPolicy& policy) {
  Retry retry(policy, stop_);
  while (true) {
    std::string text;
    try {
      get(path, {}, [&](const FetchResponse&, std::span<const std::byte> bytes) {
        if (bytes.size() > max_bytes - text.size()) {
          throw Error(ErrorCode::kCorrupt,
                      fmt::format("the server sends more than {} bytes", max_bytes));
        }
        text += as_text(bytes);
        return true;
      });
      return text;
    } catch (const TransientFailure& failure) {
      if (failure.unreachable) throw Error(ErrorCode::kNotFound, failure.reason);
      retry.wait_after(failure);
    }
  }
}

}  // namespace trtmc
