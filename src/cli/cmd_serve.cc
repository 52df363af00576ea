#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

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

  bool is_impatient() const {
    const std::lock_guard lock(mutex_);
    return stops_ > 1;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int stops_ = 0;
  bool wants_reload_ = false;
};

// The usual soft limit of open files is below the usual number of connections. The hard one is the
// administrator's word.
void allow_descriptors(int max_connections) {
  constexpr rlim_t kOthers = 64;  // Bundles, listeners, the log, what libraries open.
  const rlim_t wanted = static_cast<rlim_t>(max_connections) + kOthers;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= wanted) return;
  log_warning("{} open files are allowed: fewer than {} connections at a time", limit.rlim_cur,
              max_connections);
}

}  // namespace

// Ends with Interrupted if running requests had to be cut off.
void execute(const ServeCommand& command, Console& console) {
  console.configure_log(command.log);
  ServiceOptions options = command.service;
  options.version = program_version();
  options.build_id = build_id();
  allow_descriptors(options.http.max_connections);
  SignalDesk desk;
  std::atomic<bool> is_loading = true;
  // From before the models are loaded, so that a SIGHUP then waits until they are.
  const InterruptScope interrupt([&](int number) {
    if (is_loading && number != SIGHUP) end_by_signal(number);
    desk.on_signal(number);
  });
  Service service(options);
  is_loading = false;
  console.print(service.url() + "\n");
  std::jthread reload;
  while (desk.next() == SignalDesk::Wish::kReload) {
    reload = std::jthread([&] { service.reload(); });
  }
  log_info("stopping: {} connections are open", service.open_connections());
  const auto deadline = std::chrono::steady_clock::now() + command.drain;
  if (service.drain(deadline, [&] { return desk.is_impatient(); })) return;
  log_warning("stopping with {} connections open: their requests are cut off",
              service.open_connections());
  throw Interrupted();
}

}  // namespace trtmc
