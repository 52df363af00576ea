#include "backends/tensorrt/trt_engine.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"

namespace trtmc::tensorrt {
namespace {

using nvinfer1::OptProfileSelector;

Error refused(const NvInferLog& log, std::string_view what) {
  return {ErrorCode::kUnsupported,
          fmt::format("TensorRT {}: {}", what, log.last_error("it gives no reason")),
          "--verbose prints all that it says"};
}

int64_t length_of(const InputShape::Length& length, const EngineProfile& profile,
                  OptProfileSelector selector) {
  if (length.fixed > 0) return length.fixed;
  const LengthRange& range = profile.at(length.axis);
  switch (selector) {
    case OptProfileSelector::kMIN:
      return range.least;
    case OptProfileSelector::kOPT:
      return range.usual;
    case OptProfileSelector::kMAX:
      return range.most;
  }
  return range.most;
}

bool describe(nvinfer1::IOptimizationProfile& described, const std::vector<InputShape>& inputs,
              const EngineProfile& profile) {
  bool taken = true;
  for (const InputShape& input : inputs) {
    for (const auto selector :
         {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX}) {
      nvinfer1::Dims dims{};
      for (const InputShape::Length& length : input.lengths) {
        dims.d[dims.nbDims++] = length_of(length, profile, selector);
      }
      taken &= described.setDimensions(input.name.c_str(), selector, dims);
    }
  }
  return taken;
}

// A plan without weights: it gets them from the bundle when it is loaded, the same ones.
void configure(nvinfer1::IBuilderConfig& config) {
  config.setFlag(nvinfer1::BuilderFlag::kSTRIP_PLAN);
  config.setFlag(nvinfer1::BuilderFlag::kREFIT_IDENTICAL);
  config.clearFlag(nvinfer1::BuilderFlag::kTF32);  // What is float32 has 24 bits.
  config.setMaxAuxStreams(0);                      // A step is captured from one stream.
}

std::vector<std::byte> copied(const nvinfer1::IHostMemory& memory) {
  const auto* bytes = static_cast<const std::byte*>(memory.data());
  return {bytes, bytes + memory.size()};
}

std::vector<std::byte> build(nvinfer1::IBuilder& builder, nvinfer1::INetworkDefinition& network,
                             const std::vector<InputShape>& inputs, const EngineRequest& request,
                             const PlanCache& cache, const NvInferLog& log) {
  const Owned<nvinfer1::IBuilderConfig> config(builder.createBuilderConfig());
  if (!config) throw refused(log, "makes no builder configuration");
  configure(*config);
  for (const EngineProfile& profile : request.shape.profiles) {
    nvinfer1::IOptimizationProfile* described = builder.createOptimizationProfile();
    if (described == nullptr || !describe(*described, inputs, profile) ||
        config->addOptimizationProfile(described) < 0) {
      throw refused(log, "refuses the lengths that an engine is built for");
    }
  }
  const std::vector<std::byte> times =
      cache.find(request.timing_name).value_or(std::vector<std::byte>());
  const Owned<nvinfer1::ITimingCache> timings(
      config->createTimingCache(times.data(), times.size()));
  if (timings) config->setTimingCache(*timings, false);
  const Owned<nvinfer1::IHostMemory> plan(builder.buildSerializedNetwork(network, *config));
  if (!plan) throw refused(log, "can't build the engine");
  if (const nvinfer1::ITimingCache* measured = config->getTimingCache()) {
    const Owned<nvinfer1::IHostMemory> bytes(measured->serialize());
    if (bytes) cache.keep(request.timing_name, copied(*bytes));
  }
  return copied(*plan);
}

}  // namespace

TrtEngine::TrtEngine(const NvInferLibrary& library, NvInferLog& log, const EngineRequest& request,
                     const PlanCache& cache, cudaStream_t stream)
    : runtime_(library.make_runtime(log)) {
  log.forget_error();
  const Owned<nvinfer1::IBuilder> builder = library.make_builder(log);
  const Owned<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(
      1U << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED)));
  if (!network) throw refused(log, "makes no network");
  NvInferSink sink(*network, request.spec, request.weights, request.form.type, request.shape.fixed);
  record_decoder(request.spec, request.form, sink);

  if (!load_kept(library, log, sink, request, cache)) {
    log_info("building an engine for TensorRT; the next time it is there");
    log.forget_error();
    const std::vector<std::byte> plan =
        build(*builder, *network, sink.inputs(), request, cache, log);
    if (!load(plan, log)) throw refused(log, "can't load the engine that it built");
    give_weights(library, log, sink);
    cache.keep(request.plan_name, plan);
  }

  for (size_t profile = 0; profile < request.shape.profiles.size(); ++profile) {
    contexts_.emplace_back(engine_->createExecutionContext());
    if (!contexts_.back() ||
        !contexts_.back()->setOptimizationProfileAsync(static_cast<int32_t>(profile), stream)) {
      throw refused(log, "makes no execution context");
    }
  }
  for (const auto& [name, weights] : sink.weights()) device_bytes_ += weights.bytes.size();
  device_bytes_ += contexts_.size() * static_cast<uint64_t>(engine_->getDeviceMemorySizeV2());
}

bool TrtEngine::load(std::span<const std::byte> plan, NvInferLog& log) {
  log.forget_error();
  engine_.reset(runtime_->deserializeCudaEngine(plan.data(), plan.size()));
  return engine_ != nullptr;
}

bool TrtEngine::load_kept(const NvInferLibrary& library, NvInferLog& log, const NvInferSink& sink,
                          const EngineRequest& request, const PlanCache& cache) {
  const auto found = cache.find(request.plan_name);
  if (!found || !load(*found, log)) return false;
  try {
    give_weights(library, log, sink);
    return true;
  } catch (const Error& error) {
    log_warning("an engine that was built before is not used: {}", error.what());
    engine_.reset();
    return false;
  }
}

void TrtEngine::give_weights(const NvInferLibrary& library, NvInferLog& log,
                             const NvInferSink& sink) {
  const Owned<nvinfer1::IRefitter> refitter = library.make_refitter(*engine_, log);
  std::vector<const char*> names(static_cast<size_t>(refitter->getAllWeights(0, nullptr)));
  refitter->getAllWeights(static_cast<int32_t>(names.size()), names.data());
  for (const char* name : names) {
    const auto found = sink.weights().find(name);
    if (found == sink.weights().end() || !refitter->setNamedWeights(name, found->second.view())) {
      throw refused(log, fmt::format("does not take the weights \"{}\"", name));
    }
  }
  if (!refitter->refitCudaEngine()) throw refused(log, "does not take the weights");
}

}  // namespace trtmc::tensorrt
