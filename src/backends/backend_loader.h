// The backends there are: those linked in, and modules opened on request.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"

namespace trtmc {

// "cpu" first, "reference" last. A module among them ("cuda", "tensorrt") is opened when it is
// asked something.
std::span<const Backend* const> all_backends();

// By name, or for "auto" the first of those linked in that can run `manifest` on this machine:
// modules are used on request only. Throws kUnsupported with every backend's reason,
// kInvalidArgument for an unknown name.
const Backend& find_backend(std::string_view name, const Manifest& manifest);

}  // namespace trtmc
