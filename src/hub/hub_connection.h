// A thread's line to the hub: follows redirects without letting the token go elsewhere, and says
// what a refusal means.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "hub/retry.h"
#include "hub/transport.h"

namespace trtmc {

class HubConnection {
 public:
  // `endpoint` as in HubSettings; it alone gets the token. If it is https, so is every address that
  // it redirects to, or the redirect is refused.
  HubConnection(std::unique_ptr<Transport> transport, std::string endpoint, std::string token,
                std::stop_token stop);

  struct Range {
    uint64_t first, last;  // Both included.
  };

  // GETs `path` (which begins with a slash) of the endpoint. The sink gets the body of an answer
  // 200 or 206, which is then returned. Throws TransientFailure where trying again may help (no
  // answer, 408, 429, 5xx), DownloadStopped, or an Error for a refusal.
  FetchResponse get(const std::string& path, std::optional<Range> range, const BodySink& sink);

  // The body of an answer 200, tried again as `policy` says; a server that can't be reached at all
  // is not. Throws kCorrupt if it has more than `max_bytes`.
  std::string get_text(const std::string& path, size_t max_bytes, const RetryPolicy& policy);

 private:
  FetchResponse exchange(const FetchRequest& request, const BodySink& sink);
  std::string redirected(const std::string& url, const FetchResponse& response) const;
  [[noreturn]] void refuse(const FetchResponse& response) const;

  std::unique_ptr<Transport> transport_;
  std::string endpoint_;
  std::string origin_;  // Of the endpoint.
  std::string token_;
  std::stop_token stop_;
};

}  // namespace trtmc
