// Prints what is made of the program's own --help: `trtmc_describe man|bash|zsh|fish`. Part of the
// build, not of what is installed.
#include <cstdio>
#include <string_view>

#include "cli/man_page.h"
#include "cli/options.h"
#include "cli/shell_completion.h"
#include "trtmc/version.h"

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  const trtmc::ProgramDescription program = trtmc::describe_program();
  std::string text;
  if (what == "man") text = trtmc::man_page(program, TRTMC_VERSION_STRING);
  if (what == "bash") text = trtmc::bash_completion(program);
  if (what == "zsh") text = trtmc::zsh_completion(program);
  if (what == "fish") text = trtmc::fish_completion(program);
  if (text.empty()) {
    std::fputs("usage: trtmc_describe man|bash|zsh|fish\n", stderr);
    return 2;
  }
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
