// What `trtmc serve` was asked to do, and its options.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "cli/console.h"
#include "cli/settings.h"
#include "server/service.h"

namespace trtmc {

struct ServeCommand {
  LogOptions log;
  ServiceOptions service;
  std::chrono::milliseconds drain{30'000};  // For running requests at the end.
};

// Throws kInvalidArgument with a hint.
ServeCommand parse_serve_command(std::span<const std::string> arguments, const Settings& settings);

}  // namespace trtmc
