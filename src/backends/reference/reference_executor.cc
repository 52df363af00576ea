#include <fmt/format.h>

#include <optional>

#include "backends/backend.h"
#include "backends/builtin_backends.h"
#include "backends/host_logits.h"
#include "backends/reference/reference_ops.h"
#include "backends/step_limits.h"
#include "base/check.h"
#include "bundle/quant_scheme.h"

namespace trtmc {
namespace reference {
namespace {

constexpr int kBlockSize = 16;

class ReferenceExecutor final : public Executor {
 public:
  ReferenceExecutor(const Bundle& bundle, const ExecutorOptions& options)
      : bundle_(bundle),
        limits_(make_limits(bundle.spec(), options, kBlockSize,
                            kv_block_bytes(bundle.spec(), KvType::kF32, kBlockSize))),
        kv_type_(options.kv_type),
        probe_(options.hidden_state_probe),
        rope_table_(make_rope_table(bundle.spec().rope)),
        kv_(bundle.spec(), limits_, options.kv_type) {}

  Limits limits() const override { return limits_; }

  MemoryUse memory() const override {
    uint64_t weight_bytes = 0;
    for (const Section& section : bundle_.sections()) {
      if (section.kind == SectionKind::kTensor) weight_bytes += section.bytes;
    }
    return {.weight_bytes = weight_bytes,
            .kv_committed_bytes = kv_.committed_bytes(),
            .kv_budget_bytes = static_cast<uint64_t>(limits_.num_blocks) *
                               kv_block_bytes(bundle_.spec(), KvType::kF32, kBlockSize),
            .scratch_bytes = 0};
  }

  void submit(const StepBatch& batch) override {
    check_step(batch, bundle_.spec(), limits_);
    ReferenceOps ops(bundle_, rope_table_, batch, limits_.block_size, kv_, probe_);
    const Matrix& result = ops.get(decoder_forward(bundle_.spec(), ops));
    values_ = result.values;
    const int vocab_size = bundle_.spec().vocab_size;
    logits_ = HostLogits(values_, static_cast<int>(result.rows), vocab_size, vocab_size);
  }

  const Logits& wait() override { return logits_; }
  void copy_block(BlockId from, BlockId to) override { kv_.copy_block(from, to); }

  std::string description() const override {
    return fmt::format("plain float, 1 thread, {} KV", kv_type_name(kv_type_));
  }

 private:
  const Bundle& bundle_;
  Limits limits_;
  KvType kv_type_;
  HiddenStateProbe probe_;
  RopeTable rope_table_;
  KvStore kv_;
  std::vector<float> values_;
  HostLogits logits_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::optional<std::string> unavailable() const override { return std::nullopt; }
  std::string description() const override { return "plain float, 1 thread"; }
  std::optional<std::string> unsupported(const Manifest& manifest) const override {
    if (is_quant_scheme(manifest.quantization)) return std::nullopt;
    return fmt::format("weights quantized as \"{}\"", manifest.quantization);
  }
  std::unique_ptr<Executor> load(const Bundle& bundle,
                                 const ExecutorOptions& options) const override {
    return std::make_unique<ReferenceExecutor>(bundle, options);
  }
};

}  // namespace
}  // namespace reference

const Backend& reference_backend() {
  static const reference::ReferenceBackend kBackend;
  return kBackend;
}

}  // namespace trtmc
