// Signals that ask the program to stop. Ctrl-C ends it at once with exit status 130, SIGTERM and
// SIGHUP by the signal; a command that has something to finish or to clean up says what happens
// instead. One that the caller has the program ignore (nohup, a shell's background job) stays
// ignored.
#pragma once

#include <functional>
#include <stdexcept>

namespace trtmc {

// Thrown by a command that gave up because of such a signal; main() ends with interrupted_status().
class Interrupted : public std::exception {};

// Takes the signals over for the program's whole life, and has a write to a closed pipe or beyond
// the limit on a file's size fail like any other instead of ending the program. Call once, at the
// start.
void install_interrupts();

// The exit status after Interrupted: 130. Does not return if SIGTERM or SIGHUP was the reason: then
// the program ends by it, as its caller expects.
int interrupted_status();

// What such a signal does where nobody says otherwise. For an action that is called with its
// number.
[[noreturn]] void end_by_signal(int number);

// While it lives, Ctrl-C does what the scope says; scopes nest, the innermost has the word. If what
// was to stop does not react, a further Ctrl-C two seconds later ends the program all the same.
class InterruptScope {
 public:
  enum class Termination {
    kAtOnce,  // SIGTERM and SIGHUP end the program.
    kActs,    // They call the action, which is to lead to Interrupted.
  };

  // Keeps a Ctrl-C for the next scope within.
  InterruptScope() : InterruptScope({}, Termination::kAtOnce) {}
  // Calls `action` on a thread of its own (not in the signal handler); at once if the scope around
  // this one has kept a Ctrl-C.
  explicit InterruptScope(std::function<void()> action,
                          Termination termination = Termination::kAtOnce);
  // Every one of the three signals calls `action` with its number, each time; when to end is its
  // business alone. If that is because of the last one, throw Interrupted.
  explicit InterruptScope(std::function<void(int)> action);
  ~InterruptScope();  // Waits for an action that is running.
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  void forget();  // A Ctrl-C that was kept.

 private:
  friend struct SignalWatch;

  std::function<void()> action_;
  std::function<void(int)> signal_action_;
  Termination termination_;
  InterruptScope* outer_;
};

// While it lives, a signal that ends the program gives the terminal of standard input the modes
// back that it had when the scope began.
class TerminalScope {
 public:
  TerminalScope();
  ~TerminalScope();
  TerminalScope(const TerminalScope&) = delete;
  TerminalScope& operator=(const TerminalScope&) = delete;
};

}  // namespace trtmc
