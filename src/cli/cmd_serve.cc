#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/background_log.h"
#include "base/log.h"
#include "cli/build_info.h"
#include "cli/commands.h"
#include "cli/interrupts.h"

namespace trtmc {
namespace {

// What signals ask for.
class SignalDesk {
 public:
  enum class Wish { kReload, kStop };

  void on_signal(int number) {
    const std::lock_guard lock(mutex_);
    if (number == SIGHUP) {
      wants_reload_ = true;
    } else {
      ++stops_;
      last_stop_ = number;
    }
    changed_.notify_all();
  }

  // Waits for the next one.
  Wish next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stops_ > 0 || wants_reload_; });
    if (stops_ > 0) return Wish::kStop;
    wants_reload_ = false;
    return Wish::kReload;
  }

  int last_stop() const {
    const std::lock_guard lock(mutex_);
    return last_stop_;
  }

  bool is_impatient() const {
    const std::lock_guard lock(mutex_);
    return stops_ > 1;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int stops_ = 0;
  int last_stop_ = 0;
  bool wants_reload_ = false;
};

// Reads the service's files again on a thread of its own, however long that takes. A wish that
// comes meanwhile is one for afterwards.
class Reloader {
 public:
  explicit Reloader(Service& service) : thread_([this, &service] { run(service); }) {}
  ~Reloader() {
    stop();
    thread_.join();
  }

  void ask() {
    {
      const std::lock_guard lock(mutex_);
      is_asked_ = true;
    }
    changed_.notify_all();
  }

  // Begins none any more. False if one still reads after a time in which files that can be read are
  // read.
  bool stop() {
    constexpr std::chrono::seconds kPatience{10};
    std::unique_lock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
    return changed_.wait_for(lock, kPatience, [&] { return !is_busy_; });
  }

 private:
  void run(Service& service) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_over_ || is_asked_; });
      if (is_over_) return;
      is_asked_ = false;
      is_busy_ = true;
      lock.unlock();
      service.reload();
      lock.lock();
      is_busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_asked_ = false, is_busy_ = false, is_over_ = false;
  std::thread thread_;
};

// What one large answer took is given back to the system, rather than kept for the next: large
// pieces are mappings of their own, and threads share few arenas.
void give_memory_back() {
  constexpr int kMappedBytes = 1 << 20;
  constexpr int kArenas = 2;
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  mallopt(M_TRIM_THRESHOLD, 4 * kMappedBytes);
  mallopt(M_ARENA_MAX, kArenas);
}

// The usual soft limit of open files is below the usual number of connections. The hard one is the
// administrator's word.
void allow_descriptors(int max_connections) {
  // Bundles, listeners, the log, what libraries open.
  constexpr rlim_t kOthers = 64 + HttpServerOptions::kMaxProbes;
  const rlim_t wanted = static_cast<rlim_t>(max_connections) + kOthers;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= wanted) return;
  log_warning("{} open files are allowed: fewer than {} connections at a time", limit.rlim_cur,
              max_connections);
}

}  // namespace

// Ends by the signal if running requests had to be cut off.
void execute(const ServeCommand& command, Console& console) {
  // Lines on requests come from the threads that serve them.
  std::optional<BackgroundLog> log(std::in_place, console.configure_log(command.log));
  ServiceOptions options = command.service;
  options.version = program_version();
  options.build_id = build_id();
  allow_descriptors(options.http.max_connections);
  give_memory_back();
  SignalDesk desk;
  // While models are loaded, and once there are no requests to wait for.
  std::atomic<bool> ends_at_once = true;
  // From before the models are loaded, so that a SIGHUP then waits until they are.
  const InterruptScope interrupt([&](int number) {
    if (ends_at_once && number != SIGHUP) end_by_signal(number);
    desk.on_signal(number);
  });
  Service service(options);
  ends_at_once = false;
  console.print(service.url() + "\n");
  Reloader reloader(service);
  while (desk.next() == SignalDesk::Wish::kReload) reloader.ask();
  log_info("stopping: {} connections are open", service.open_connections());
  const auto deadline = std::chrono::steady_clock::now() + command.drain;
  const bool all_ended = service.drain(deadline, [&] { return desk.is_impatient(); });
  ends_at_once = true;
  if (all_ended && !desk.is_impatient() && reloader.stop()) return;
  if (!all_ended) {
    log_warning("stopping with {} connections open: their requests are cut off",
                service.open_connections());
  }
  // What still computes, or reads from what never answers, would keep the service.
  log.reset();
  end_by_signal(desk.last_stop());
}

}  // namespace trtmc
