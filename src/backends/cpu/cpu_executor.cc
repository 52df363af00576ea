#include "backends/cpu/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/builtin_backends.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/host_logits.h"
#include "backends/step_limits.h"
#include "base/check.h"
#include "base/error.h"
#include "bundle/quant_scheme.h"

namespace trtmc {
namespace cpu {
namespace {

// A step of one token waits for memory, which fewer threads may be enough for; one of several
// computes.
struct NumThreads {
  explicit NumThreads(const ExecutorOptions& options)
      : one(options.num_threads > 0 ? options.num_threads : ThreadPool::default_num_threads()),
        several(options.num_threads_batch > 0 ? options.num_threads_batch : one) {}

  int most() const { return std::max(one, several); }
  int of(int num_tokens) const { return num_tokens == 1 ? one : several; }

  int one;
  int several;
};

std::string to_string(const NumThreads& threads) {
  std::string text = fmt::format("{} thread{}", threads.one, threads.one == 1 ? "" : "s");
  if (threads.several != threads.one) {
    text += fmt::format(" ({} for several tokens)", threads.several);
  }
  return text;
}

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(const Bundle& bundle, const ExecutorOptions& options, Grain grain)
      : spec_(bundle.spec()),
        kernels_(choose_kernels(options.isa)),
        limits_(make_limits(spec_, options, kKvBlockSize,
                            CpuKvCache::block_bytes(spec_, options.kv_type))),
        probe_(options.hidden_state_probe),
        num_threads_(options),
        pool_(num_threads_.most()),
        weights_(bundle),
        cache_(spec_, options.kv_type, limits_.num_blocks),
        ops_(spec_, kernels_, weights_, limits_, cache_, pool_, grain, probe_) {}

  Limits limits() const override { return limits_; }

  MemoryUse memory() const override {
    return {.weight_bytes = weights_.bytes(),
            .kv_committed_bytes = cache_.committed_bytes(),
            .kv_budget_bytes = static_cast<uint64_t>(limits_.num_blocks) *
                               CpuKvCache::block_bytes(spec_, cache_.type()),
            .scratch_bytes = ops_.scratch_bytes()};
  }

  void submit(const StepBatch& batch) override {
    check_step(batch, spec_, limits_);
    touch_blocks(batch);
    pool_.use(num_threads(static_cast<int>(batch.tokens.size())));
    ops_.begin(batch);
    const Activation& logits = ops_.get(decoder_forward(spec_, ops_));
    const auto floats = static_cast<size_t>(logits.rows * logits.stride);
    logits_ = HostLogits({logits.data, floats}, logits.rows, spec_.vocab_size, logits.stride);
  }

  const Logits& wait() override { return logits_; }

  void copy_block(BlockId from, BlockId to) override {
    TRTMC_CHECK(from >= 0 && from < limits_.num_blocks && to >= 0 && to < limits_.num_blocks,
                "a block that does not exist");
    cache_.copy_block(from, to);
  }

  std::string description() const override {
    return fmt::format("{}, {}, {} KV", kernels_.name, to_string(num_threads_),
                       kv_type_name(cache_.type()));
  }
  std::string_view isa() const override { return kernels_.name; }
  int num_threads(int num_tokens) const override { return num_threads_.of(num_tokens); }

 private:
  void touch_blocks(const StepBatch& batch) {
    for (size_t s = 0; s + 1 < batch.sequence_starts.size(); ++s) {
      const auto begin = static_cast<size_t>(batch.sequence_starts[s]);
      const auto end = static_cast<size_t>(batch.sequence_starts[s + 1]);
      const BlockId* table = &batch.block_tables[s * static_cast<size_t>(batch.max_blocks)];
      for (int block = batch.positions[begin] / kKvBlockSize;
           block <= batch.positions[end - 1] / kKvBlockSize; ++block) {
        cache_.touch(table[block]);
      }
    }
  }

  const DecoderSpec& spec_;
  const KernelTable& kernels_;
  Limits limits_;
  HiddenStateProbe probe_;
  NumThreads num_threads_;
  ThreadPool pool_;
  CpuWeights weights_;
  CpuKvCache cache_;
  CpuOps ops_;
  HostLogits logits_;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::optional<std::string> unavailable() const override { return std::nullopt; }
  std::string description() const override {
    return fmt::format("{}, {}", to_string(NumThreads({})), choose_kernels("").name);
  }
  std::optional<std::string> unsupported(const Manifest& manifest) const override {
    if (is_quant_scheme(manifest.quantization)) return std::nullopt;
    return fmt::format("weights quantized as \"{}\"", manifest.quantization);
  }
  std::unique_ptr<Executor> load(const Bundle& bundle,
                                 const ExecutorOptions& options) const override {
    return make_cpu_executor(bundle, options);
  }
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(const Bundle& bundle, const ExecutorOptions& options,
                                            Grain grain) {
  return std::make_unique<CpuExecutor>(bundle, options, grain);
}

}  // namespace cpu

const Backend& cpu_backend() {
  static const cpu::CpuBackend kBackend;
  return kBackend;
}

}  // namespace trtmc
