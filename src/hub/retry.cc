#include "hub/retry.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace trtmc {

void wait_unless_stopped(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  never.wait_for(lock, stop, time, [] { return false; });
  if (stop.stop_requested()) throw DownloadStopped();
}

Retry::Retry(const RetryPolicy& policy, std::stop_token stop)
    : policy_(policy), stop_(std::move(stop)) {}

void Retry::wait_after(const TransientFailure& failure) {
  if (stop_.stop_requested()) throw DownloadStopped();
  if (failure.retry_after_s > policy_.longest_retry_after_s) {
    throw Error(ErrorCode::kExhausted, fmt::format("{}, and the server asks to wait {} s",
                                                   failure.reason, failure.retry_after_s));
  }
  if (++failures_ >= policy_.attempts) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{} ({} attempts)", failure.reason, policy_.attempts),
                "try again later: what has been downloaded is kept");
  }
  const auto doubled = policy_.first_wait * (1 << std::min(failures_ - 1, 16));
  const auto wait = std::max<std::chrono::milliseconds>(
      std::min(doubled, policy_.longest_wait), std::chrono::seconds(failure.retry_after_s));
  log_debug("{}; next attempt in {} ms", failure.reason, wait.count());
  wait_unless_stopped(wait, stop_);
}

}  // namespace trtmc
