// A backend that opens, is for no model, and throws an Error when asked to load one.
#include "backends/backend_module.h"
#include "base/error.h"

namespace trtmc {
namespace {

class WorkingBackend final : public Backend {
 public:
  std::string_view name() const override { return "works"; }
  std::optional<std::string> unavailable() const override { return std::nullopt; }
  std::string description() const override { return "a library of its own"; }
  std::optional<std::string> unsupported(const Manifest& manifest) const override {
    return "no model of " + manifest.quantization;
  }
  std::unique_ptr<Executor> load(const Bundle& /*bundle*/,
                                 const ExecutorOptions& /*options*/) const override {
    log_info("loading is about to fail");
    throw Error(ErrorCode::kExhausted, "thrown in a library", "and caught outside of it");
  }
};

}  // namespace
}  // namespace trtmc

extern "C" __attribute__((visibility("default"))) const trtmc::BackendModule* trtmc_backend_v1(
    const trtmc::ModuleHost* host) noexcept {
  static const trtmc::WorkingBackend kBackend;
  static const trtmc::BackendModule kModule{trtmc::module_build_id(), &kBackend};
  trtmc::set_log_sink(host->log);
  return &kModule;
}
