#include "cli/interrupts.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"

namespace trtmc {
namespace {

constexpr int kInterruptedStatus = 130;
// So many within one action end the program all the same: what was to stop does not react.
constexpr int kImpatient = 3;

int g_pipe[2] = {-1, -1};  // The handler writes a byte, the watching thread reads it.
std::mutex g_mutex;
std::function<void()> g_action;  // Guarded by g_mutex; empty: end the program.
int g_times = 0;                 // Guarded by g_mutex; since g_action was set.

void on_signal(int) {
  const int saved = errno;
  [[maybe_unused]] const ssize_t written = write(g_pipe[1], "!", 1);
  errno = saved;
}

void watch() {
  char byte;
  while (true) {
    const ssize_t got = read(g_pipe[0], &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const std::lock_guard lock(g_mutex);
    if (!g_action || ++g_times >= kImpatient) _exit(kInterruptedStatus);
    g_action();
  }
}

}  // namespace

void install_interrupts() {
  TRTMC_CHECK(g_pipe[0] < 0, "interrupts are installed twice");
  if (pipe(g_pipe) != 0) return;  // Ctrl-C then keeps its default action.
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // Without SA_RESTART: a line being read at the terminal ends with EINTR.
  sigaction(SIGINT, &action, nullptr);
  std::thread(watch).detach();
}

InterruptScope::InterruptScope(std::function<void()> action) {
  const std::lock_guard lock(g_mutex);
  outer_ = std::exchange(g_action, std::move(action));
  g_times = 0;
}

InterruptScope::~InterruptScope() {
  const std::lock_guard lock(g_mutex);
  g_action = std::move(outer_);
  g_times = 0;
}

}  // namespace trtmc
