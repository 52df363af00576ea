#include "backends/backend_loader.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "backends/builtin_backends.h"
#include "backends/module_backend.h"
#include "base/error.h"

namespace trtmc {
namespace {

std::optional<std::string> reason_against(const Backend& backend, const Manifest& manifest) {
  if (auto reason = backend.unavailable()) return reason;
  return backend.unsupported(manifest);
}

}  // namespace

std::span<const Backend* const> all_backends() {
  static const ModuleBackend kCuda("cuda", module_folders());
  static const std::array<const Backend*, 3> kBackends = {&cpu_backend(), &kCuda,
                                                          &reference_backend()};
  return kBackends;
}

const Backend& find_backend(std::string_view name, const Manifest& manifest) {
  std::string names = "auto";
  std::string reasons;
  bool known = name == "auto";
  for (const Backend* backend : all_backends()) {
    names += fmt::format(", {}", backend->name());
    const bool is_module = dynamic_cast<const ModuleBackend*>(backend) != nullptr;
    if (name == "auto" ? is_module : name != backend->name()) continue;
    known = true;
    const auto reason = reason_against(*backend, manifest);
    if (!reason) return *backend;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", backend->name(), *reason);
  }
  if (!known) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there is no backend \"{}\", only {}", name, names));
  }
  throw Error(ErrorCode::kUnsupported, "no backend can run this model: " + reasons);
}

}  // namespace trtmc
