// A transport without a network: each GET is answered by a function.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "hub/transport.h"

namespace trtmc {

// What one GET is answered with. A body that is cut fails after its bytes, as a connection does.
struct FakeAnswer {
  int status = 200;
  std::map<std::string, std::string> headers = {};
  std::string body = {};
  bool cut = false;
  int retry_after_s = 0;
};

// Shared by the transports that it makes; calls come from several threads.
class FakeNetwork {
 public:
  using Answer = std::function<FakeAnswer(const FetchRequest& request)>;

  explicit FakeNetwork(Answer answer) : answer_(std::move(answer)) {}

  TransportFactory transports() {
    return [this] { return std::make_unique<FakeTransport>(*this); };
  }
  std::vector<FetchRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  class FakeTransport : public Transport {
   public:
    explicit FakeTransport(FakeNetwork& network) : network_(network) {}

    FetchResponse get(const FetchRequest& request, const BodySink& sink,
                      const std::stop_token& stop) override {
      const FakeAnswer answer = network_.answer(request);
      if (stop.stop_requested()) throw TransientFailure{"stopped"};
      const FetchResponse response{answer.status, answer.headers, answer.retry_after_s};
      // In pieces, as a network would.
      constexpr size_t kPieceBytes = 3;
      for (size_t at = 0; at < answer.body.size(); at += kPieceBytes) {
        const std::string_view piece = std::string_view(answer.body).substr(at, kPieceBytes);
        if (!sink(response, as_bytes(piece))) return response;
      }
      if (answer.cut) throw TransientFailure{"the connection was cut"};
      return response;
    }

   private:
    FakeNetwork& network_;
  };

  FakeAnswer answer(const FetchRequest& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    return answer_(request);
  }

  mutable std::mutex mutex_;
  Answer answer_;
  std::vector<FetchRequest> requests_;
};

}  // namespace trtmc
