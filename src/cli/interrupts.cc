#include "cli/interrupts.h"

#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace trtmc {
namespace {

constexpr int kInterruptedStatus = 130;
constexpr double kPatienceMs = 2000;

int g_pipe[2] = {-1, -1};  // The handler writes the signal's number, the watching thread reads it.

void on_signal(int number) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(number);
  [[maybe_unused]] const ssize_t written = write(g_pipe[1], &byte, 1);
  errno = saved;
}

void take_over(int number) {
  struct sigaction action {};
  if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // What the signal interrupts goes on: all that is to happen happens on the watching thread.
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

[[noreturn]] void end_by(int number) {
  signal(number, SIG_DFL);
  raise(number);
  _exit(128 + number);  // The caller had the signal blocked.
}

}  // namespace

// What the watching thread and the scopes share.
struct SignalWatch {
  std::mutex mutex;
  InterruptScope* scope = nullptr;        // The innermost one.
  std::optional<SteadyTime> first;        // The first Ctrl-C that no scope is done with.
  bool kept = false;                      // It waits for an action.
  int ended_by = 0;                       // SIGTERM or SIGHUP, once it has called an action.
  std::optional<termios> terminal_modes;  // To be restored before the end.

  [[noreturn]] void loop();
  bool pass_on(int number);
  void on_interrupt();
  void on_termination(int number);
  void restore_terminal() const;
};

namespace {

// Never destroyed: the watching thread outlives main().
SignalWatch& watch() {
  static auto& instance = *new SignalWatch;
  return instance;
}

}  // namespace

// In the background the terminal is somebody else's, and touching it would stop the program.
void SignalWatch::restore_terminal() const {
  if (!terminal_modes || tcgetpgrp(STDIN_FILENO) != getpgrp()) return;
  tcsetattr(STDIN_FILENO, TCSANOW, &*terminal_modes);
}

bool SignalWatch::pass_on(int number) {
  if (scope == nullptr || !scope->signal_action_) return false;
  if (number != SIGHUP) ended_by = number == SIGTERM ? SIGTERM : 0;
  scope->signal_action_(number);
  return true;
}

void SignalWatch::on_interrupt() {
  const SteadyTime now = std::chrono::steady_clock::now();
  if (scope == nullptr || (first && milliseconds_between(*first, now) > kPatienceMs)) {
    restore_terminal();
    _exit(kInterruptedStatus);
  }
  if (!first) first = now;
  kept = !scope->action_;
  if (scope->action_) scope->action_();
}

void SignalWatch::on_termination(int number) {
  if (scope != nullptr && scope->termination_ == InterruptScope::Termination::kActs) {
    ended_by = number;
    return scope->action_();
  }
  restore_terminal();
  end_by(number);
}

void SignalWatch::loop() {
  while (true) {
    unsigned char number = 0;
    const ssize_t got = read(g_pipe[0], &number, 1);
    if (got < 0 && errno == EINTR) continue;
    TRTMC_CHECK(got == 1, "the pipe of signals is gone");
    const std::lock_guard lock(mutex);
    if (pass_on(number)) continue;
    number == SIGINT ? on_interrupt() : on_termination(number);
  }
}

void install_interrupts() {
  TRTMC_CHECK(g_pipe[0] < 0, "interrupts are installed twice");
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  // Without the pipe or the thread the other signals keep their default action.
  if (pipe(g_pipe) != 0) return;
  try {
    std::thread([] { watch().loop(); }).detach();
  } catch (const std::system_error&) {
    return;
  }
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) take_over(number);
}

void end_by_signal(int number) {
  if (number == SIGINT) _exit(kInterruptedStatus);
  end_by(number);
}

int interrupted_status() {
  const std::lock_guard lock(watch().mutex);
  if (watch().ended_by != 0) end_by(watch().ended_by);
  return kInterruptedStatus;
}

InterruptScope::InterruptScope(std::function<void()> action, Termination termination)
    : action_(std::move(action)), termination_(termination) {
  const std::lock_guard lock(watch().mutex);
  outer_ = std::exchange(watch().scope, this);
  if (action_ && std::exchange(watch().kept, false)) action_();
}

InterruptScope::InterruptScope(std::function<void(int)> action)
    : signal_action_(std::move(action)), termination_(Termination::kActs) {
  const std::lock_guard lock(watch().mutex);
  outer_ = std::exchange(watch().scope, this);
  if (std::exchange(watch().kept, false)) signal_action_(SIGINT);
}

InterruptScope::~InterruptScope() {
  const std::lock_guard lock(watch().mutex);
  watch().scope = outer_;
  watch().kept = false;
  watch().first.reset();
}

void InterruptScope::forget() {
  const std::lock_guard lock(watch().mutex);
  watch().kept = false;
  watch().first.reset();
}

TerminalScope::TerminalScope() {
  termios modes{};
  if (tcgetattr(STDIN_FILENO, &modes) != 0) return;
  const std::lock_guard lock(watch().mutex);
  watch().terminal_modes = modes;
}

TerminalScope::~TerminalScope() {
  const std::lock_guard lock(watch().mutex);
  watch().terminal_modes.reset();
}

}  // namespace trtmc
