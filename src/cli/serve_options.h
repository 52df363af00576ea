// What `trtmc serve` was asked to do, and its options.
#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/settings.h"
#include "engine/engine.h"
#include "engine/loaded_model.h"
#include "server/http_server.h"

namespace trtmc {

// A bundle and what clients call it.
struct NamedBundle {
  std::string name;  // Empty: the bundle's own.
  std::filesystem::path path;
};

struct ServeCommand {
  LogOptions log;
  std::vector<NamedBundle> bundles;
  LoadOptions load;
  EngineOptions engine;
  HttpServerOptions http;
  std::filesystem::path api_key_file;  // Empty: none is needed.
  bool logs_requests = true;
  bool logs_json = false;
  std::chrono::milliseconds drain{30'000};
};

// Throws kInvalidArgument with a hint.
ServeCommand parse_serve_command(std::span<const std::string> arguments, const Settings& settings);

}  // namespace trtmc
