// Trying again: how often, and how long to wait before it.
#pragma once

#include <chrono>
#include <exception>
#include <stop_token>
#include <string_view>

#include "hub/transport.h"

namespace trtmc {

// Thrown by whatever gives up because a stop was requested.
class DownloadStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "the download was stopped"; }
};

struct RetryPolicy {
  int attempts = 5;                           // In a row, without progress.
  std::chrono::milliseconds first_wait{500};  // Doubled each time.
  std::chrono::milliseconds longest_wait{8000};
  int longest_retry_after_s = 120;  // A server that asks for more is not waited for.
};

// Waits, or throws DownloadStopped as soon as `stop` is requested.
void wait_unless_stopped(std::chrono::milliseconds time, const std::stop_token& stop);

// The attempts at one thing.
class Retry {
 public:
  Retry(const RetryPolicy& policy, std::stop_token stop);

  // After a failed attempt: waits, so that the next one can begin. Throws kNotFound with the reason
  // when all are used up (kExhausted if the server asks for too long a wait), or DownloadStopped.
  void wait_after(const TransientFailure& failure);
  // An attempt has got ahead: the counting begins anew.
  void note_progress() { failures_ = 0; }

 private:
  RetryPolicy policy_;
  std::stop_token stop_;
  int failures_ = 0;
};

}  // namespace trtmc
