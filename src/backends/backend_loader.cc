#include "backends/backend_loader.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "backends/builtin_backends.h"
#include "backends/module_backend.h"
#include "base/error.h"

namespace trtmc {
namespace {

std::optional<std::string> reason_against(const Backend& backend, const Manifest& manifest) {
  if (auto reason = backend.unavailable()) return reason;
  return backend.unsupported(manifest);
}

// Those that "auto" chooses among, best first.
std::span<const Backend* const> linked_backends() {
  static const std::array<const Backend*, 2> kBackends = {&cpu_backend(), &reference_backend()};
  return kBackends;
}

std::vector<const Backend*> backends_called(std::string_view name) {
  if (name == "auto") return {linked_backends().begin(), linked_backends().end()};
  std::string names = "auto";
  for (const Backend* backend : all_backends()) {
    if (name == backend->name()) return {backend};
    names += fmt::format(", {}", backend->name());
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("there is no backend \"{}\", only {}", name, names));
}

}  // namespace

std::span<const Backend* const> all_backends() {
  static const ModuleBackend kCuda("cuda", module_folders());
  static const ModuleBackend kTensorRt("tensorrt", module_folders());
  static const std::array<const Backend*, 4> kBackends = {&cpu_backend(), &kCuda, &kTensorRt,
                                                          &reference_backend()};
  return kBackends;
}

const Backend& find_backend(std::string_view name, const Manifest& manifest) {
  std::string reasons;
  for (const Backend* backend : backends_called(name)) {
    const auto reason = reason_against(*backend, manifest);
    if (!reason) return *backend;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", backend->name(), *reason);
  }
  throw Error(ErrorCode::kUnsupported, "no backend can run this model: " + reasons);
}

}  // namespace trtmc
