#include "backends/tensorrt/trt_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "backends/cuda/cuda_device.h"
#include "backends/host_logits.h"
#include "backends/step_limits.h"
#include "backends/tensorrt/library_version.h"
#include "backends/tensorrt/repeated_step.h"
#include "backends/tensorrt/run_inputs.h"
#include "backends/tensorrt/sequence_caches.h"
#include "backends/tensorrt/trt_engine.h"
#include "base/check.h"
#include "base/log.h"

namespace trtmc::tensorrt {
namespace {

constexpr int kTokensPerStep = 512;
constexpr uint64_t kAlignment = 256;  // Of what TensorRT writes.

ElementType element_type(DType type) {
  switch (type) {
    case DType::kF16:
      return ElementType::kFloat16;
    case DType::kBF16:
      return ElementType::kBFloat16;
    default:
      return ElementType::kFloat32;
  }
}

// What other backends can do would be ignored in silence here.
void refuse_other_options(const ExecutorOptions& options) {
  const auto refuse_if = [](bool asked, const char* what) {
    if (asked) throw Error(ErrorCode::kUnsupported, what);
  };
  refuse_if(static_cast<bool>(options.hidden_state_probe),
            "the tensorrt backend shows nothing of what happens inside a step");
  refuse_if(options.kv_type != KvType::kF32,
            "the tensorrt backend keeps keys and values in the type of their layer");
  refuse_if(options.activation_type != ActivationType::kF32,
            "the tensorrt backend has activations of the type of their layer");
  refuse_if(!options.isa.empty(), "the tensorrt backend has no CPU instruction set to choose");
  refuse_if(options.num_threads_batch != 0,
            "the tensorrt backend computes no step with threads of the CPU");
}

// All that is settled before anything is built.
struct Choice {
  DecoderRoute route;
  DType precision;
  std::vector<int> fp32_layers;
  int capacity;
};

Choice choose(const Bundle& bundle, const ExecutorOptions& options, const NvInferLibrary& library) {
  cuda::check_cuda(cudaSetDevice(0), "the GPU");
  size_t free = 0;
  size_t total = 0;
  cuda::check_cuda(cudaMemGetInfo(&free, &total), "the GPU");
  RouteQuestion question;
  question.spec = bundle.spec();
  question.quantization = bundle.manifest().quantization;
  question.precision = options.precision.value_or(stored_precision(bundle));
  question.fp32_layers = options.fp32_layers;
  question.capacity = options.context_length;
  question.version = library.known_version();
  question.device_bytes = free;
  const RouteDecision decision = choose_decoder_route(question);
  const auto taken = decision.taken();
  if (!taken) {
    throw Error(ErrorCode::kUnsupported, "no route through TensorRT: " + decision.refusal());
  }
  log_info("TensorRT {}: route {}", version_name(library.version()), decoder_route_name(*taken));
  const int capacity =
      options.context_length > 0 ? options.context_length : bundle.spec().context_length;
  return {*taken, question.precision, options.fp32_layers, capacity};
}

// A KV block is a sequence's whole cache. Off the route in place one more is needed than is lent.
Limits limits_of(const DecoderSpec& spec, ExecutorOptions options, const Choice& choice) {
  const uint64_t slot = SequenceCaches::slot_bytes(
      spec, layer_precisions(spec, choice.precision, choice.fp32_layers), choice.capacity);
  if (choice.route != DecoderRoute::kNativeKv && options.kv_memory_bytes > 0) {
    if (options.kv_memory_bytes / 2 < slot) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("KV memory of {} bytes holds no two blocks of {} positions, which "
                              "have {} each: the route {} needs a spare one",
                              options.kv_memory_bytes, choice.capacity, slot,
                              decoder_route_name(choice.route)));
    }
    options.kv_memory_bytes -= slot;
  }
  return make_limits(spec, options, choice.capacity, slot, kTokensPerStep);
}

std::vector<int> windows_of(const DecoderSpec& spec) {
  std::set<int> windows;
  for (const LayerSpec& layer : spec.layers) windows.insert(layer.sliding_window);
  return {windows.begin(), windows.end()};
}

// What the engines call keys and values of one layer.
struct CacheNames {
  explicit CacheNames(int layer)
      : past{fmt::format("past_key_values.{}.key", layer),
             fmt::format("past_key_values.{}.value", layer)},
        present{fmt::format("present.{}.key", layer), fmt::format("present.{}.value", layer)} {}
  std::array<std::string, 2> past, present;
};

class TrtExecutor final : public Executor {
 public:
  TrtExecutor(const NvInferLibrary& library, const Bundle& bundle, const ExecutorOptions& options,
              const PlanCache& plans)
      : spec_(bundle.spec()),
        choice_(choose(bundle, options, library)),
        limits_(limits_of(spec_, options, choice_)),
        most_tokens_(std::min(limits_.max_tokens_per_step, choice_.capacity)),
        in_place_(choice_.route == DecoderRoute::kNativeKv),
        windows_(windows_of(spec_)),
        inputs_(windows_, most_tokens_, most_visible()),
        caches_(spec_, layer_precisions(spec_, choice_.precision, choice_.fp32_layers),
                choice_.capacity, limits_.num_blocks, in_place_) {
    for (int layer = 0; layer < spec_.num_layers(); ++layer) names_.emplace_back(layer);
    cuda::check_cuda(cudaGetDeviceProperties(&properties_, 0), "the GPU");
    load_engines(library, bundle, options, plans);
    log_.forget_error();  // What was said so far explains no step that fails.
    cuda::check_cuda(cudaStreamSynchronize(stream_.get()), "loading the model");
  }

  ~TrtExecutor() override {
    cudaStreamSynchronize(stream_.get());
    repeated_.forget();
  }

  Limits limits() const override { return limits_; }

  MemoryUse memory() const override {
    uint64_t engine_bytes = 0;
    for (const auto& engine : engines_) engine_bytes += engine->device_bytes();
    return {.weight_bytes = engine_bytes,
            .kv_committed_bytes = caches_.bytes(),
            .kv_budget_bytes = caches_.bytes(),
            .scratch_bytes = inputs_.bytes() + logits_.bytes()};
  }

  void submit(const StepBatch& batch) override {
    check_step(batch, spec_, limits_);
    const auto num_sequences = static_cast<int>(batch.sequence_starts.size()) - 1;
    reserve_logits(static_cast<int>(batch.logits_rows.size()), num_sequences);
    uint64_t offset = 0;  // Of a run's logits on the device, in floats.
    size_t row = 0;       // The first of its rows.
    for (int s = 0; s < num_sequences; ++s) {
      const std::vector<int> rows = rows_of(batch, s, row);
      start_run(batch, s, rows, logits_.data() + offset);
      copy_logits(offset, row, rows.size());
      offset += run_floats(std::max<size_t>(rows.size(), 1));
      row += rows.size();
    }
    const size_t floats = row * static_cast<size_t>(spec_.vocab_size);
    host_logits_ = HostLogits(host_memory_->span().first(floats), static_cast<int>(row),
                              spec_.vocab_size, spec_.vocab_size);
  }

  const Logits& wait() override {
    cuda::check_cuda(cudaStreamSynchronize(stream_.get()), "a step");
    return host_logits_;
  }

  void copy_block(BlockId from, BlockId to) override {
    TRTMC_CHECK(from >= 0 && from < limits_.num_blocks && to >= 0 && to < limits_.num_blocks,
                "a block that does not exist");
    caches_.copy(from, to, stream_.get());
  }

  std::string description() const override {
    return fmt::format("{}, TensorRT, {}, {}", properties_.name, decoder_route_name(choice_.route),
                       dtype_name(choice_.precision));
  }
  std::string_view isa() const override { return properties_.name; }

 private:
  int most_visible() const {
    return in_place_ ? choice_.capacity : choice_.capacity - 1 + most_tokens_;
  }

  void load_engines(const NvInferLibrary& library, const Bundle& bundle,
                    const ExecutorOptions& options, const PlanCache& plans) {
    ThreadPool pool(options.num_threads > 0 ? options.num_threads
                                            : ThreadPool::default_num_threads());
    const WeightStream weights(bundle, pool);
    const std::string version = version_name(library.version());
    const std::string gpu = fmt::format("{}, compute capability {}.{}", properties_.name,
                                        properties_.major, properties_.minor);
    GraphForm form = graph_form(choice_.route, element_type(choice_.precision));
    form.fp32_layers = choice_.fp32_layers;
    for (const EngineShape& shape : engines_of(choice_.route, choice_.capacity, most_tokens_)) {
      const PlanKey key{bundle.identity(),   version, gpu, choice_.route, choice_.precision,
                        choice_.fp32_layers, shape};
      const EngineRequest request{.spec = spec_,
                                  .weights = weights,
                                  .form = form,
                                  .shape = shape,
                                  .plan_name = plan_name(key),
                                  .timing_name = timing_name(version, gpu)};
      engines_.push_back(std::make_unique<TrtEngine>(library, log_, request, plans, stream_.get()));
    }
  }

  // The tokens of sequence s whose logits are wanted, counted from its first in this step; they are
  // batch.logits_rows from `first` on.
  static std::vector<int> rows_of(const StepBatch& batch, int s, size_t first) {
    const int32_t start = batch.sequence_starts[static_cast<size_t>(s)];
    const int32_t end = batch.sequence_starts[static_cast<size_t>(s) + 1];
    std::vector<int> rows;
    for (size_t i = first; i < batch.logits_rows.size() && batch.logits_rows[i] < end; ++i) {
      rows.push_back(batch.logits_rows[i] - start);
    }
    return rows;
  }

  void start_run(const StepBatch& batch, int s, std::span<const int> rows, float* logits) {
    static constexpr std::array kFirstRow = {0};  // An engine has logits of one token at least.
    const auto start = static_cast<size_t>(batch.sequence_starts[static_cast<size_t>(s)]);
    const auto end = static_cast<size_t>(batch.sequence_starts[static_cast<size_t>(s) + 1]);
    const auto tokens = batch.tokens.subspan(start, end - start);
    const int num_past = batch.positions[start];
    const Run run{
        .slot = batch.block_tables[static_cast<size_t>(s) * static_cast<size_t>(batch.max_blocks)],
        .tokens = tokens,
        .num_past = num_past,
        .rows = rows.empty() ? std::span<const int>(kFirstRow) : rows,
        .num_visible = visible_tokens(choice_.route, choice_.capacity,
                                      static_cast<int>(tokens.size()), num_past)};
    caches_.keep_first(run.slot, num_past, stream_.get());
    inputs_.load(run, stream_.get());
    const EnginePlace place = place_of_run(choice_.route, run.num_tokens(), num_past);
    launch(engines_[static_cast<size_t>(place.engine)]->context(place.profile), run, logits);
    caches_.advance(run.slot, num_past + run.num_tokens());
  }

  void launch(nvinfer1::IExecutionContext& context, const Run& run, float* logits) {
    const auto bind = [&] { bind_run(context, run, logits); };
    const auto enqueue = [&] { return context.enqueueV3(stream_.get()); };
    bool started = false;
    if (in_place_ && run.num_tokens() == 1) {
      const RepeatedStep::Form form{&context, caches_.past(run.slot, 0, SequenceCaches::kKey),
                                    logits, run.num_visible};
      started = repeated_.run(form, stream_.get(), bind, enqueue);
    } else {
      // A one-token prompt has the context of long ones: what was bound for it no longer is.
      repeated_.forget();
      bind();
      started = enqueue();
    }
    if (!started) {
      throw Error(ErrorCode::kInternal,
                  "TensorRT could not start a step: " + log_.last_error("it gives no reason"));
    }
  }

  static void bind_input(nvinfer1::IExecutionContext& context, const std::string& name,
                         std::initializer_list<int64_t> lengths, const void* address) {
    nvinfer1::Dims dims{};
    for (const int64_t length : lengths) dims.d[dims.nbDims++] = length;
    if (!context.setInputShape(name.c_str(), dims) ||
        !context.setInputTensorAddress(name.c_str(), address)) {
      throw Error(ErrorCode::kInternal, fmt::format("TensorRT refuses the input \"{}\"", name));
    }
  }

  static void bind_output(nvinfer1::IExecutionContext& context, const std::string& name,
                          void* address) {
    if (!context.setTensorAddress(name.c_str(), address)) {
      throw Error(ErrorCode::kInternal, fmt::format("TensorRT refuses the output \"{}\"", name));
    }
  }

  void bind_run(nvinfer1::IExecutionContext& context, const Run& run, float* logits) {
    const int64_t num_tokens = run.num_tokens();
    bind_input(context, "input_ids", {1, num_tokens}, inputs_.ids());
    bind_input(context, "position_ids", {1, num_tokens}, inputs_.positions());
    bind_input(context, "logits_rows", {static_cast<int64_t>(run.rows.size())}, inputs_.rows());
    if (in_place_) bind_input(context, "write_indices", {1}, inputs_.write_index());
    for (const int window : windows_) {
      const std::string name = window > 0 ? fmt::format("mask.window.{}", window) : "mask";
      bind_input(context, name, {1, 1, num_tokens, run.num_visible}, inputs_.mask(window));
    }
    const int64_t tokens = in_place_ ? choice_.capacity : run.num_past;
    for (int layer = 0; layer < spec_.num_layers(); ++layer) {
      const CacheNames& names = names_[static_cast<size_t>(layer)];
      for (const auto part : {SequenceCaches::kKey, SequenceCaches::kValue}) {
        bind_input(context, names.past[part], {1, spec_.num_kv_heads, tokens, spec_.head_dim},
                   caches_.past(run.slot, layer, part));
        bind_output(context, names.present[part], caches_.present(run.slot, layer, part));
      }
    }
    bind_output(context, "logits", logits);
  }

  // A run's logits lie one row after the other; the next run's begin where TensorRT can write.
  uint64_t run_floats(size_t rows) const {
    constexpr uint64_t kFloats = kAlignment / sizeof(float);
    const uint64_t floats = rows * static_cast<uint64_t>(spec_.vocab_size);
    return (floats + kFloats - 1) / kFloats * kFloats;
  }

  void reserve_logits(int rows, int num_sequences) {
    const auto runs = static_cast<size_t>(num_sequences);  // Each has a row, wanted or not.
    const uint64_t floats = run_floats(static_cast<size_t>(rows) + runs) + runs * kAlignment;
    if (floats <= logits_.count()) return;
    cuda::check_cuda(cudaStreamSynchronize(stream_.get()), "a step");
    repeated_.forget();
    logits_ = {};
    host_memory_.reset();
    logits_ = cuda::DeviceBuffer<float>(floats, "memory for logits");
    host_memory_.emplace(floats, "memory for logits");
  }

  void copy_logits(uint64_t offset, size_t row, size_t rows) {
    if (rows == 0) return;
    const auto width = static_cast<size_t>(spec_.vocab_size);
    cuda::check_cuda(
        cudaMemcpyAsync(host_memory_->data() + row * width, logits_.data() + offset,
                        rows * width * sizeof(float), cudaMemcpyDeviceToHost, stream_.get()),
        "a step");
  }

  const DecoderSpec& spec_;
  Choice choice_;
  Limits limits_;
  int most_tokens_;  // Of one run.
  bool in_place_;
  std::vector<int> windows_;
  cudaDeviceProp properties_{};
  NvInferLog log_;
  cuda::Stream stream_;
  RunInputs inputs_;
  SequenceCaches caches_;
  std::vector<CacheNames> names_;  // By layer.
  std::vector<std::unique_ptr<TrtEngine>> engines_;
  RepeatedStep repeated_;
  cuda::DeviceBuffer<float> logits_;
  std::optional<cuda::PinnedBuffer<float>> host_memory_;
  HostLogits host_logits_;
};

}  // namespace

std::unique_ptr<Executor> make_trt_executor(const NvInferLibrary& library, const Bundle& bundle,
                                            const ExecutorOptions& options,
                                            const PlanCache& cache) {
  refuse_other_options(options);
  return std::make_unique<TrtExecutor>(library, bundle, options, cache);
}

}  // namespace trtmc::tensorrt
