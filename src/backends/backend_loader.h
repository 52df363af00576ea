// The backends there are: those linked in, and modules opened on request.
#pragma once

#include <span>
#include <string_view>

#include "backends/backend.h"

namespace trtmc {

// Best first; "reference" last.
std::span<const Backend* const> all_backends();

// By name, or the first that can run `manifest` on this machine for "auto". Throws kUnsupported
// with every backend's reason, kInvalidArgument for an unknown name.
const Backend& find_backend(std::string_view name, const Manifest& manifest);

}  // namespace trtmc
