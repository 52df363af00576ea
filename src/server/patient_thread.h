// Lets a thread go on where there is no memory: what operator new would refuse it, it waits for, as
// long as others may give memory back. For the server's own thread: a coroutine of Asio that can't
// begin to wait for its socket is lost without a word, and its client waits for ever.
#pragma once

#include <chrono>
#include <memory>

namespace trtmc {

class PatientThread {
 public:
  // Of the thread that makes it, while it lives; one at a time a thread. Std's new handler becomes
  // that of this class, for the whole process; other threads get std::bad_alloc at once as before.
  explicit PatientThread(std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~PatientThread();
  PatientThread(const PatientThread&) = delete;

  // Puts aside again what this thread had for bad times, as far as there is memory. Nothing on a
  // thread that is not patient.
  static void replenish();

 private:
  static void on_no_memory();
  void await_memory();

  const std::chrono::milliseconds patience_;
  std::chrono::milliseconds waited_{0};  // Since there was last memory for the reserve.
  std::unique_ptr<char[]> reserve_;
};

}  // namespace trtmc
