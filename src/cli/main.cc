// The program: picks a command and is the one place where failures end.
#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/interrupts.h"
#include "cli/read_faults.h"

namespace trtmc {
namespace {

constexpr int kOutputClosedStatus = 141;  // As a shell shows a death by SIGPIPE.

// A stream that the caller closed must not become the number of a file that is opened later. The
// stand-in is open the wrong way round, so that its use fails as on a closed one.
void reserve_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

int run(std::span<const std::string> arguments, Console& console) {
  const Settings settings(process_environment);
  const Command command = parse_command_line(arguments, settings);
  std::visit([&](const auto& chosen) { execute(chosen, console); }, command);
  return 0;
}

int run_and_report(std::span<const std::string> arguments, Console& console) {
  try {
    return run(arguments, console);
  } catch (const Interrupted&) {
    return interrupted_status();
  } catch (const OutputClosed&) {
    return kOutputClosedStatus;
  } catch (const std::exception&) {
    const Error error = current_error();
    console.report(error);
    return exit_status(error.code());
  }
}

}  // namespace
}  // namespace trtmc

int main(int argc, char** argv) {
  trtmc::reserve_standard_streams();
  trtmc::install_interrupts();
  trtmc::install_read_faults();
  trtmc::Console console;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return trtmc::run_and_report(arguments, console);
}
