// Ctrl-C. Without a handler it ends the program at once with exit status 130; a command that has
// something to finish or to clean up says what Ctrl-C does instead.
#pragma once

#include <functional>
#include <stdexcept>

namespace trtmc {

// Thrown by a command that gave up because of Ctrl-C; main() ends with exit status 130.
class Interrupted : public std::exception {};

// Takes Ctrl-C over for the program's whole life. Call once, at the start.
void install_interrupts();

// While it lives, Ctrl-C calls `action` on a thread of its own (not in the signal handler); the
// third Ctrl-C ends the program. One at a time.
class InterruptScope {
 public:
  explicit InterruptScope(std::function<void()> action);
  ~InterruptScope();  // Waits for an action that is running.
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  std::function<void()> outer_;
};

}  // namespace trtmc
