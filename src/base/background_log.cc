#include "base/background_log.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace trtmc {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr std::chrono::seconds kPatience{1};

}  // namespace

struct BackgroundLog::Queue {
  explicit Queue(LogSink to) : sink(std::move(to)) {}

  const LogSink sink;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<LogLevel, std::string>> lines;
  size_t bytes = 0;
  uint64_t num_lost = 0;
  bool is_idle = true;  // Nothing waits, and nothing is being written.
  bool is_over = false;

  void push(LogLevel level, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (bytes + line.size() > kMaxBytes) {
      ++num_lost;
      return;
    }
    lines.emplace_back(level, line);
    bytes += line.size();
    is_idle = false;
    changed.notify_all();
  }

  // The next line. Those that were lost came after all that wait.
  std::pair<LogLevel, std::string> take() {
    if (lines.empty()) {
      const uint64_t lost = std::exchange(num_lost, 0);
      return {LogLevel::kWarning,
              message_line(LogLevel::kWarning,
                           fmt::format("{} lines of the log were lost: they come faster than they "
                                       "can be written",
                                       lost))};
    }
    std::pair<LogLevel, std::string> line = std::move(lines.front());
    lines.pop_front();
    bytes -= line.second.size();
    return line;
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return is_over || !lines.empty() || num_lost > 0; });
      if (is_over) return;
      try {
        const auto [level, line] = take();
        lock.unlock();
        sink(level, line);
      } catch (const std::bad_alloc&) {  // The line is left out, as everywhere in the log.
      }
      if (!lock.owns_lock()) lock.lock();
      is_idle = lines.empty() && num_lost == 0;
      changed.notify_all();
    }
  }
};

BackgroundLog::BackgroundLog(LogSink sink) : queue_(std::make_shared<Queue>(std::move(sink))) {
  try {
    std::thread([queue = queue_] { queue->run(); }).detach();
  } catch (const std::system_error&) {
    throw Error(ErrorCode::kExhausted, "the system refused to start a thread");
  }
  set_log_sink(
      [queue = queue_](LogLevel level, std::string_view line) { queue->push(level, line); });
}

BackgroundLog::~BackgroundLog() {
  set_log_sink(queue_->sink);
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait_for(lock, kPatience, [&] { return queue_->is_idle; });
  queue_->is_over = true;
  queue_->changed.notify_all();
}

}  // namespace trtmc
