// An engine of TensorRT for one graph: built, or found among those built before, and given the
// bundle's weights, which no plan holds a second time.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "backends/tensorrt/engine_shape.h"
#include "backends/tensorrt/nvinfer_library.h"
#include "backends/tensorrt/nvinfer_log.h"
#include "backends/tensorrt/nvinfer_sink.h"
#include "backends/tensorrt/plan_cache.h"

namespace trtmc::tensorrt {

struct EngineRequest {
  const DecoderSpec& spec;
  const WeightStream& weights;
  GraphForm form;
  EngineShape shape;
  std::string plan_name;
  std::string timing_name;
};

class TrtEngine {
 public:
  // Takes minutes where the engine has to be built. What is borrowed is used here only, but for
  // `log`, which must outlive the engine. Throws kUnsupported with TensorRT's reason.
  TrtEngine(const NvInferLibrary& library, NvInferLog& log, const EngineRequest& request,
            const PlanCache& cache, cudaStream_t stream);

  // One for each profile of the shape, so that changing between them costs nothing.
  nvinfer1::IExecutionContext& context(int profile) const {
    return *contexts_[static_cast<size_t>(profile)];
  }
  // Weights and what contexts work in, in bytes of the device.
  uint64_t device_bytes() const { return device_bytes_; }

 private:
  bool load(std::span<const std::byte> plan, NvInferLog& log);
  // Loads the engine that was built before, with weights; not if there is none, it can't be loaded
  // or does not take the weights.
  bool load_kept(const NvInferLibrary& library, NvInferLog& log, const NvInferSink& sink,
                 const EngineRequest& request, const PlanCache& cache);
  void give_weights(const NvInferLibrary& library, NvInferLog& log, const NvInferSink& sink);

  Owned<nvinfer1::IRuntime> runtime_;
  Owned<nvinfer1::ICudaEngine> engine_;
  std::vector<Owned<nvinfer1::IExecutionContext>> contexts_;
  uint64_t device_bytes_ = 0;
};

}  // namespace trtmc::tensorrt
