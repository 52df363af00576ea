#include "backends/cuda/step_graph.h"

#include "backends/cuda/check_cuda.h"

namespace trtmc::cuda {
namespace {

constexpr std::string_view kDoing = "capturing a step";

cudaGraphExec_t captured(cudaStream_t stream, FunctionRef<void()> record) {
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), kDoing);
  cudaGraph_t graph = nullptr;
  try {
    record();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream, &graph), kDoing);
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, kDoing);
  return executable;
}

}  // namespace

void StepGraphs::run(const Key& key, cudaStream_t stream, FunctionRef<void()> record) {
  auto place = graphs_.find(key);
  if (place == graphs_.end()) place = graphs_.emplace(key, captured(stream, record)).first;
  check_cuda(cudaGraphLaunch(place->second, stream), "a step");
}

void StepGraphs::clear() {
  for (const auto& [key, graph] : graphs_) cudaGraphExecDestroy(graph);
  graphs_.clear();
}

}  // namespace trtmc::cuda
