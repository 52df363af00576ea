// The one symbol of libtrtmc_backend_tensorrt.so.
#include <fmt/format.h>

#include "backends/backend_module.h"
#include "backends/cuda/cuda_device.h"
#include "backends/tensorrt/library_version.h"
#include "backends/tensorrt/trt_executor.h"
#include "base/environment.h"

namespace trtmc {
namespace tensorrt {
namespace {

class TensorRtBackend final : public Backend {
 public:
  std::string_view name() const override { return "tensorrt"; }

  std::optional<std::string> unavailable() const override {
    // Asked before TensorRT is: without a device it was seen to hand out objects that are none.
    if (auto reason = cuda::refusal(cuda::probe_device())) return reason;
    if (!opened_library().nvinfer) return opened_library().trouble;
    return std::nullopt;
  }

  std::string description() const override {
    if (!opened_library().nvinfer) return opened_library().trouble;
    const cuda::DeviceProbe probe = cuda::probe_device();
    return fmt::format("TensorRT {} on {}, compute capability {}.{}",
                       version_name(opened_library().nvinfer->version()), probe.name,
                       probe.architecture / 10, probe.architecture % 10);
  }

  // A route that takes anything is always there; what is asked for decides between them at load.
  std::optional<std::string> unsupported(const Manifest& manifest) const override {
    if (!opened_library().nvinfer) return opened_library().trouble;
    RouteQuestion question;
    question.spec = manifest.spec;
    question.quantization = manifest.quantization;
    question.version = opened_library().nvinfer->known_version();
    const RouteDecision decision = choose_decoder_route(question);
    if (decision.taken()) return std::nullopt;
    return "no route through TensorRT: " + decision.refusal();
  }

  std::unique_ptr<Executor> load(const Bundle& bundle,
                                 const ExecutorOptions& options) const override {
    if (const auto reason = unavailable()) throw Error(ErrorCode::kUnsupported, *reason);
    const PlanCache cache(plan_folder(process_environment));
    return make_trt_executor(*opened_library().nvinfer, bundle, options, cache);
  }
};

}  // namespace
}  // namespace tensorrt
}  // namespace trtmc

extern "C" __attribute__((visibility("default"))) const trtmc::BackendModule* trtmc_backend_v1(
    const trtmc::ModuleHost* host) noexcept {
  static const trtmc::tensorrt::TensorRtBackend kBackend;
  static const trtmc::BackendModule kModule{trtmc::module_build_id(), &kBackend};
  try {
    trtmc::set_log_sink(host->log);
  } catch (...) {
    return nullptr;
  }
  return &kModule;
}
