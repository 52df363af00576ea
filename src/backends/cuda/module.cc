// The one symbol of libtrtmc_backend_cuda.so.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "backends/backend_module.h"
#include "backends/cuda/cuda_device.h"
#include "backends/cuda/cuda_executor.h"
#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/probe.h"
#include "backends/cuda/kernels/rms_norm.h"

namespace trtmc {
namespace cuda {
namespace {

// And whether it takes our kernels.
DeviceProbe probe_with_kernel() {
  DeviceProbe probe = probe_device();
  const bool loads = probe.status == kSuccess && probe.architecture >= kOldestArchitecture;
  if (loads) probe.kernel_status = kernel_status();
  return probe;
}

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  std::optional<std::string> unavailable() const override { return refusal(probe_with_kernel()); }
  std::string description() const override {
    const DeviceProbe probe = probe_device();
    return fmt::format("{}, compute capability {}.{}", probe.name, probe.architecture / 10,
                       probe.architecture % 10);
  }
  std::optional<std::string> unsupported(const Manifest& manifest) const override {
    constexpr std::array<std::string_view, 3> kSchemes{"none", "q8", "q4"};
    if (std::ranges::find(kSchemes, manifest.quantization) == kSchemes.end()) {
      return fmt::format("weights quantized as \"{}\", but it takes q8 and q4",
                         manifest.quantization);
    }
    const int head_dim = manifest.spec.head_dim;
    if (head_dim > kMostHeadDim || head_dim % 2 != 0) {
      return fmt::format("heads of {} components, but it takes even numbers up to {}", head_dim,
                         kMostHeadDim);
    }
    if (num_norm_parts(manifest.spec.hidden_size) > kMostNormParts) {
      return fmt::format("a hidden width of {}, but it takes up to {}", manifest.spec.hidden_size,
                         kMostNormParts * kNormColumns);
    }
    return std::nullopt;
  }
  std::unique_ptr<Executor> load(const Bundle& bundle,
                                 const ExecutorOptions& options) const override {
    if (const auto reason = unavailable()) throw Error(ErrorCode::kUnsupported, *reason);
    if (options.kv_type == KvType::kQ8) {
      throw Error(ErrorCode::kUnsupported,
                  "the cuda backend keeps keys and values as f32, bf16 or fp8",
                  "leave --kv-type q8 to the cpu backend");
    }
    return make_cuda_executor(bundle, options);
  }
};

}  // namespace
}  // namespace cuda
}  // namespace trtmc

extern "C" __attribute__((visibility("default"))) const trtmc::BackendModule* trtmc_backend_v1(
    const trtmc::ModuleHost* host) noexcept {
  static const trtmc::cuda::CudaBackend kBackend;
  static const trtmc::BackendModule kModule{trtmc::module_build_id(), &kBackend};
  try {
    trtmc::set_log_sink(host->log);
  } catch (...) {
    return nullptr;
  }
  return &kModule;
}
