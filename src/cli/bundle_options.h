// What the commands that make, check and keep bundles and checkpoints were asked to do, and their
// options.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "builder/build_plan.h"
#include "cli/console.h"
#include "cli/route_options.h"
#include "cli/settings.h"
#include "engine/loaded_model.h"
#include "graph/onnx_export.h"
#include "hub/hub_id.h"

namespace trtmc {

struct BuildCommand {
  LogOptions log;
  std::filesystem::path source;  // A folder, or a model's id on the hub.
  std::filesystem::path output;
  BuildOptions build;
  int threads = 0;
  bool dry_run = false, force = false, json = false;
};
struct PullCommand {
  LogOptions log;
  HubSource source;
  bool json = false;
};
struct ListCommand {
  LogOptions log;
  std::filesystem::path folder = ".";  // Of bundles.
  bool json = false;
};
struct RmCommand {
  LogOptions log;
  std::string target;  // A bundle's path, or "ID" or "ID@REVISION" in the cache.
  bool yes = false;    // Do not ask.
};
struct VerifyCommand {
  LogOptions log;
  std::filesystem::path bundle;
  LoadOptions load;
  std::filesystem::path checkpoint;     // Empty: not compared.
  bool compare_with_reference = false;  // load.backend against reference.
  std::filesystem::path goldens;        // Empty: not compared.
  bool json = false;
};
struct InspectCommand {
  LogOptions log;
  std::filesystem::path bundle;
  RouteOptions routes;
  bool backends = false, json = false;
};
struct ExportCommand {
  LogOptions log;
  std::filesystem::path bundle;
  std::filesystem::path output;  // A folder, to be made.
  OnnxOptions onnx;
  int threads = 0;
  bool json = false;
};

// Each throws kInvalidArgument with a hint.
BuildCommand parse_build_command(std::span<const std::string> arguments, const Settings& settings);
PullCommand parse_pull_command(std::span<const std::string> arguments, const Settings& settings);
ListCommand parse_list_command(std::span<const std::string> arguments, const Settings& settings);
RmCommand parse_rm_command(std::span<const std::string> arguments, const Settings& settings);
VerifyCommand parse_verify_command(std::span<const std::string> arguments,
                                   const Settings& settings);
InspectCommand parse_inspect_command(std::span<const std::string> arguments,
                                     const Settings& settings);
ExportCommand parse_export_command(std::span<const std::string> arguments,
                                   const Settings& settings);

}  // namespace trtmc
