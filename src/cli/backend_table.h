// Which backends there are, what they run on here, and why one can't run: the table that `version`
// and `inspect` print.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "bundle/manifest.h"

namespace trtmc {

struct BackendState {
  std::string name;
  std::string status;  // "ready", "unavailable" on this machine, "unsupported" for this model
  std::string detail;  // What it runs on, or the reason.
};

// `manifest` may be null: for no model in particular.
std::vector<BackendState> backend_states(const Manifest* manifest);

Json to_json(std::span<const BackendState> states);
std::string to_table(std::span<const BackendState> states);

}  // namespace trtmc
