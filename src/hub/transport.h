// One HTTP exchange, without a policy: no redirect is followed, nothing is tried again, no token is
// added. What stands above it is tested with a transport that has no network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

namespace trtmc {

struct FetchRequest {
  std::string url;
  std::string token;              // Sent as "Authorization: Bearer …"; empty: none.
  std::optional<uint64_t> first;  // Asks for the bytes [first, last] alone.
  std::optional<uint64_t> last;
};

struct FetchResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // Names in lower case; of equal names the last.
  int retry_after_s = 0;                       // 0: not said.

  // The header's value, or empty.
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

// Takes the body as it comes. `response` has the status and all headers. False: enough, the rest
// is not wanted; the exchange then ends as if the body did.
using BodySink =
    std::function<bool(const FetchResponse& response, std::span<const std::byte> bytes)>;

// An exchange failed in a way that trying again may mend.
struct TransientFailure {
  std::string reason;        // "the connection was cut"
  int retry_after_s = 0;     // How long the server asks to wait; 0: not said.
  bool unreachable = false;  // There was no connection to begin with.
};

class Transport {
 public:
  virtual ~Transport() = default;

  // GET. What the server answers, whatever its status, is a response. Throws TransientFailure if
  // there is no answer, or its body ends early. Gives up soon once `stop` is requested, with a
  // TransientFailure. One call at a time.
  virtual FetchResponse get(const FetchRequest& request, const BodySink& sink,
                            const std::stop_token& stop) = 0;
};

// Each thread of a download has a transport of its own.
using TransportFactory = std::function<std::unique_ptr<Transport>()>;

}  // namespace trtmc
