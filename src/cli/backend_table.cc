#include "cli/backend_table.h"

#include <fmt/format.h>

#include "backends/backend_loader.h"

namespace trtmc {

std::vector<BackendState> backend_states(const Manifest* manifest) {
  std::vector<BackendState> states;
  for (const Backend* backend : all_backends()) {
    const std::string name(backend->name());
    if (const auto reason = backend->unavailable()) {
      states.push_back({name, "unavailable", *reason});
      continue;
    }
    const auto reason = manifest == nullptr ? std::nullopt : backend->unsupported(*manifest);
    if (reason) {
      states.push_back({name, "unsupported", *reason});
    } else {
      states.push_back({name, "ready", backend->description()});
    }
  }
  return states;
}

Json to_json(std::span<const BackendState> states) {
  Json::Array array;
  for (const BackendState& state : states) {
    Json json;
    json.set("name", state.name);
    json.set("status", state.status);
    json.set("detail", state.detail);
    array.push_back(std::move(json));
  }
  return array;
}

std::string to_table(std::span<const BackendState> states) {
  std::string table;
  for (const BackendState& state : states) {
    table += fmt::format("{:<11} {:<12} {}\n", state.name, state.status, state.detail);
  }
  return table;
}

}  // namespace trtmc
