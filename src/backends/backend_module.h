// What a backend that is a library of its own exports, and what it is handed when it is opened. The
// one symbol is `trtmc_backend_v1`; everything else about such a library is hidden.
#pragma once

#include <string_view>

#include "backends/backend.h"
#include "base/log.h"

namespace trtmc {

// What the program lends to a module, which has its own copy of base/: one log for both.
struct ModuleHost {
  void (*log)(LogLevel level, std::string_view line);
};

// In static storage of the module. `build_id` is read before `backend`, which is only meaningful if
// both were built from the same sources by the same compiler.
struct BackendModule {
  const char* build_id;
  const Backend* backend;
};

// The type of `trtmc_backend_v1`. `host` outlives the module.
using BackendModuleEntry = const BackendModule* (*)(const ModuleHost* host) noexcept;
inline constexpr const char* kBackendModuleEntry = "trtmc_backend_v1";

// Names the sources, the compiler and its options as far as they decide how objects are laid out.
const char* module_build_id();

}  // namespace trtmc
