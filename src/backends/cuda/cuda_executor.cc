#include "backends/cuda/cuda_executor.h"

#include <fmt/format.h>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/cuda_logits.h"
#include "backends/cuda/device_roofs.h"
#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/gemm.h"
#include "backends/cuda/kernels/gemm_wgmma.h"
#include "backends/cuda/kernels/gemv.h"
#include "backends/cuda/kernels/gemv_quantized.h"
#include "backends/cuda/step_graph.h"
#include "backends/step_limits.h"
#include "base/check.h"
#include "base/log.h"

namespace trtmc::cuda {
namespace {

constexpr int kTokensPerStep = 4096;
constexpr int kTermsOfF32 = 3;  // kernels/terms.h
constexpr int kTermsOfBf16 = 1;
constexpr int kFewestLogitsRows = kMostGemvTokens;
constexpr int kMostSampledRows = 256;
constexpr int kFirstProgrammaticLaunch = 90;  // Compute capability 9.0.

cudaDeviceProp device_properties() {
  cudaDeviceProp properties{};
  check_cuda(cudaSetDevice(0), "the GPU");
  check_cuda(cudaGetDeviceProperties(&properties, 0), "the GPU");
  return properties;
}

DeviceLimits limits_of(const cudaDeviceProp& properties, bool quantized) {
  prepare_gemv(static_cast<int>(properties.sharedMemPerBlockOptin));
  prepare_gemv_quantized(static_cast<int>(properties.sharedMemPerBlockOptin));
  prepare_gemm();
  prepare_gemm_wgmma();
  prepare_gemm_wgmma_quantized();
  prepare_attention_bf16(quantized);
  prepare_attention_wgmma();
  check_cuda(cudaGetLastError(), "the GPU");
  return {
      .multiprocessors = properties.multiProcessorCount,
      .shared_bytes_per_block = static_cast<int>(properties.sharedMemPerBlockOptin),
      .shared_bytes_per_multiprocessor = static_cast<int>(properties.sharedMemPerMultiprocessor),
      .has_wgmma = properties.major == 9 && properties.minor == 0};
}

Limits limits_of(const DecoderSpec& spec, const ExecutorOptions& options) {
  return make_limits(spec, options, kKvBlockSize, CudaKvCache::block_bytes(spec, options.kv_type),
                     kTokensPerStep);
}

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(const Bundle& bundle, const ExecutorOptions& options, Grain grain, bool graphs)
      : spec_(bundle.spec()),
        properties_(device_properties()),
        device_(limits_of(properties_, bundle.manifest().quantization != "none")),
        limits_(limits_of(spec_, options)),
        options_(options),
        weights_(bundle),
        cache_(spec_, options.kv_type, limits_.num_blocks),
        rope_(spec_),
        arrays_(spec_, limits_, many_query_rows()),
        ops_({.spec = spec_,
              .weights = weights_,
              .cache = cache_,
              .rope = rope_,
              .limits = limits_,
              .device = device_,
              .num_terms = num_terms(),
              .grain = grain,
              .probe = options_.hidden_state_probe}),
        captures_(graphs && grain == Grain::kBlock && weights_.all_fragments() &&
                  !options_.hidden_state_probe),
        partial_(kMostSampledRows * kSampleParts, "memory for sampling"),
        counters_(kMostSampledRows, "memory for sampling", true),
        most_likely_(kMostSampledRows, "memory for sampling"),
        most_likely_here_(kMostSampledRows, "memory for sampling"),
        sampler_(spec_.vocab_size, launch_how()) {
    reserve_logits(kFewestLogitsRows);
    check_cuda(cudaDeviceSynchronize(), "loading the model");
  }

  ~CudaExecutor() override { cudaStreamSynchronize(stream_.get()); }

  Limits limits() const override { return limits_; }

  MemoryUse memory() const override {
    return {.weight_bytes = weights_.bytes(),
            .kv_committed_bytes = cache_.bytes(),
            .kv_budget_bytes = cache_.bytes(),
            .scratch_bytes = ops_.scratch_bytes() + logits_memory_.bytes() + sampler_.bytes()};
  }

  void submit(const StepBatch& batch) override {
    check_step(batch, spec_, limits_);
    const StepView step = arrays_.load(batch, stream_.get());
    rope_.reach(step.last_position);
    reserve_logits(step.num_rows);
    const bool repeats =
        captures_ && step.one_each && step.all_rows && step.num_tokens <= kMostGemvTokens;
    if (repeats) {
      graphs_.run({step.num_tokens, chunk_bucket(step.last_position)}, stream_.get(),
                  [&] { launch_step(step); });
    } else {
      launch_step(step);
    }
    const bool sampled = step.num_rows <= kMostSampledRows;
    const auto num_sampled = static_cast<size_t>(sampled ? step.num_rows : 0);
    check_cuda(
        cudaMemcpyAsync(most_likely_here_.data(), most_likely_.data(),
                        num_sampled * sizeof(MostLikely), cudaMemcpyDeviceToHost, stream_.get()),
        "a step");
    logits_ = CudaLogits(logits_memory_.data(), logits_stride_, step.num_rows, spec_.vocab_size,
                         most_likely_here_.span().first(num_sampled), &sampler_);
  }

  const Logits& wait() override {
    check_cuda(cudaStreamSynchronize(stream_.get()), "a step");
    return logits_;
  }

  void copy_block(BlockId from, BlockId to) override {
    TRTMC_CHECK(from >= 0 && from < limits_.num_blocks && to >= 0 && to < limits_.num_blocks,
                "a block that does not exist");
    cache_.copy_block(from, to, stream_.get());
  }

  std::string description() const override {
    return fmt::format("{}, {} activations, {} KV", properties_.name,
                       num_terms() == kTermsOfBf16 ? "bf16" : "f32",
                       kv_type_name(options_.kv_type));
  }
  std::string_view isa() const override { return properties_.name; }

  std::optional<DeviceRoofs> measure_roofs() override {
    const CudaMatrix& head = weights_.matrix({Role::kEmbedding});
    const bool fragments = head.fragments != nullptr;
    const void* memory = fragments ? static_cast<const void*>(head.fragments) : head.panels;
    const uint64_t bytes =
        fragments ? static_cast<uint64_t>(group_offset(head.format, head.num_panels, head.steps))
                  : static_cast<uint64_t>(head.rows) * static_cast<uint64_t>(head.cols) * 4;
    return measure_device_roofs(memory, bytes, device_.multiprocessors, stream_.get());
  }

 private:
  int num_terms() const {
    return options_.activation_type == ActivationType::kBF16 ? kTermsOfBf16 : kTermsOfF32;
  }

  int many_query_rows() const {
    if (attends_by_wgmma(cache_.view(), spec_.head_dim, num_terms(), device_)) {
      return kManyWgmmaQueryRows;
    }
    const bool on_tensor_cores =
        attends_on_tensor_cores(cache_.view(), spec_.head_dim, device_.shared_bytes_per_block);
    return on_tensor_cores ? kManyBf16QueryRows : kManyQueryRows;
  }

  // Room for the logits of so many rows; what they are in moves when it grows.
  void reserve_logits(int rows) {
    constexpr int kAlignment = 4;
    logits_stride_ = (int64_t{spec_.vocab_size} + kAlignment - 1) / kAlignment * kAlignment;
    const auto floats = static_cast<size_t>(rows) * static_cast<size_t>(logits_stride_);
    if (floats <= logits_memory_.count()) return;
    check_cuda(cudaStreamSynchronize(stream_.get()), "a step");
    graphs_.clear();
    logits_memory_ = DeviceBuffer<float>();
    logits_memory_ = DeviceBuffer<float>(floats, "memory for logits");
  }

  Launch launch_how() const {
    const int architecture = properties_.major * 10 + properties_.minor;
    return {.stream = stream_.get(), .overlaps = architecture >= kFirstProgrammaticLaunch};
  }

  void launch_step(const StepView& step) {
    const Launch how = launch_how();
    ops_.begin(step, logits_memory_.data(), logits_stride_, how);
    decoder_forward(spec_, ops_);
    if (step.num_rows > 0 && step.num_rows <= kMostSampledRows) {
      launch_most_likely({.logits = logits_memory_.data(),
                          .stride = logits_stride_,
                          .vocab_size = spec_.vocab_size,
                          .num_rows = step.num_rows,
                          .partial = partial_.data(),
                          .counters = counters_.data(),
                          .out = most_likely_.data()},
                         how);
    }
    check_cuda(cudaGetLastError(), "a step");
  }

  const DecoderSpec& spec_;
  cudaDeviceProp properties_;
  DeviceLimits device_;
  Limits limits_;
  ExecutorOptions options_;
  Stream stream_;
  CudaWeights weights_;
  CudaKvCache cache_;
  CudaRopeTable rope_;
  StepArrays arrays_;
  CudaOps ops_;
  bool captures_;
  DeviceBuffer<MostLikely> partial_;
  DeviceBuffer<int32_t> counters_;
  DeviceBuffer<MostLikely> most_likely_;
  PinnedBuffer<MostLikely> most_likely_here_;
  CudaSampler sampler_;
  DeviceBuffer<float> logits_memory_;
  int64_t logits_stride_ = 0;
  StepGraphs graphs_;
  CudaLogits logits_;
};

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(const Bundle& bundle, const ExecutorOptions& options,
                                             Grain grain, bool graphs) {
  return std::make_unique<CudaExecutor>(bundle, options, grain, graphs);
}

}  // namespace trtmc::cuda
