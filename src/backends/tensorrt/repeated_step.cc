#include "backends/tensorrt/repeated_step.h"

#include "base/log.h"

namespace trtmc::tensorrt {

bool RepeatedStep::run(const Form& form, cudaStream_t stream, FunctionRef<void()> bind,
                       FunctionRef<bool()> enqueue) {
  const bool repeats = last_ == form;
  if (!repeats) {
    forget();
    bind();
    last_ = form;
    return enqueue();
  }
  if (graph_ == nullptr && captures_ && !capture(stream, enqueue)) {
    captures_ = false;
    log_debug("TensorRT: a step can't be captured, so each is launched anew");
  }
  if (graph_ == nullptr) return enqueue();
  return cudaGraphLaunch(graph_, stream) == cudaSuccess;
}

void RepeatedStep::forget() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  graph_ = nullptr;
  last_.reset();
}

bool RepeatedStep::capture(cudaStream_t stream, FunctionRef<bool()> enqueue) {
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  const bool enqueued = enqueue();
  cudaGraph_t graph = nullptr;
  const bool ended = cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph != nullptr;
  const bool made = enqueued && ended && cudaGraphInstantiate(&graph_, graph, 0) == cudaSuccess;
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (!made) graph_ = nullptr;
  cudaGetLastError();  // Not again for the next call.
  return made;
}

}  // namespace trtmc::tensorrt
