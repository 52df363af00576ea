#include <fmt/format.h>

#include "backends/backend_loader.h"
#include "cli/backend_table.h"
#include "cli/commands.h"

// TRTMC_VERSION and TRTMC_BUILD_ID come from src/cli/CMakeLists.txt.

namespace trtmc {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

void execute(const HelpCommand& command, Console& console) { console.print(command.text); }

void execute(const VersionCommand& command, Console& console) {
  console.configure_log(command.log);
  const std::vector<BackendState> backends = backend_states(nullptr);
  if (command.json) {
    Json json;
    json.set("version", TRTMC_VERSION);
    json.set("build", TRTMC_BUILD_ID);
    json.set("compiler", compiler());
    json.set("bundle_format", static_cast<int64_t>(kBundleVersion));
    json.set("backends", to_json(backends));
    return console.print_json(json);
  }
  console.print(fmt::format("trtmc      {}\nbuild      {}\ncompiler   {}\nbundles    format {}\n\n",
                            TRTMC_VERSION, TRTMC_BUILD_ID, compiler(), kBundleVersion));
  console.print(to_table(backends));
}

}  // namespace trtmc
