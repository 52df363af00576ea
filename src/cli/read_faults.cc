#include "cli/read_faults.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/mapping_list.h"

namespace trtmc {
namespace {

int g_status = 0;  // exit_status() is not among what a handler may call.

void say(const char* text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void on_bus_error(int number, siginfo_t* info, void*) {
  const char* const path = mapped_path_at(info->si_addr);
  if (path == nullptr) {  // A bug, not a file: it happens again with the default action.
    signal(number, SIG_DFL);
    return;
  }
  say("trtmc: ");
  say(path);
  say(": can't be read any more: it was cut short while in use, or its disk fails\n"
      "hint: `trtmc verify` checks a bundle; replace one that is in use by renaming, not in "
      "place\n");
  _exit(g_status);
}

}  // namespace

void install_read_faults() {
  g_status = exit_status(ErrorCode::kCorrupt);
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace trtmc
