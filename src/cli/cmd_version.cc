#include <fmt/format.h>

#include "backends/backend_loader.h"
#include "cli/backend_table.h"
#include "cli/build_info.h"
#include "cli/commands.h"

namespace trtmc {

void execute(const HelpCommand& command, Console& console) { console.print(command.text); }

void execute(const VersionCommand& command, Console& console) {
  console.configure_log(command.log);
  const std::vector<BackendState> backends = backend_states(nullptr);
  if (command.json) {
    Json json;
    json.set("version", program_version());
    json.set("build", build_id());
    json.set("compiler", compiler_name());
    json.set("bundle_format", static_cast<int64_t>(kBundleVersion));
    json.set("backends", to_json(backends));
    return console.print_json(json);
  }
  console.print(fmt::format("trtmc      {}\nbuild      {}\ncompiler   {}\nbundles    format {}\n\n",
                            program_version(), build_id(), compiler_name(), kBundleVersion));
  console.print(to_table(backends));
}

}  // namespace trtmc
