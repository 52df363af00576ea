#include "tests/tensorrt/fake_cuda.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> work;
};

namespace trtmc::fake_cuda {
namespace {

uint64_t free_bytes = uint64_t{1} << 40;
CUgraph_st* captured = nullptr;
int launches = 0;

}  // namespace

void set_free_bytes(uint64_t bytes) { free_bytes = bytes; }

void run_or_capture(std::function<void()> work) {
  if (captured != nullptr) return captured->work.push_back(std::move(work));
  work();
}

int launched_graphs() { return launches; }

}  // namespace trtmc::fake_cuda

namespace fake = trtmc::fake_cuda;

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  constexpr size_t kAlignment = 256;
  *memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (*memory != nullptr) std::memset(*memory, 0xFF, bytes);  // Numbers that are none.
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t /*stream*/) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind /*kind*/,
                              cudaStream_t /*stream*/) {
  for (size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch,
                static_cast<const char*>(from) + row * from_pitch, width);
  }
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int /*flags*/) {
  *stream = reinterpret_cast<cudaStream_t>(&fake::launches);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t /*error*/) { return "cudaErrorOfTheFake"; }
const char* cudaGetErrorString(cudaError_t /*error*/) { return "the fake was asked to fail"; }
cudaError_t cudaSetDevice(int /*device*/) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = fake::free_bytes;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strcpy(properties->name, "a fake GPU");
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t /*stream*/, cudaStreamCaptureMode /*mode*/) {
  fake::captured = new CUgraph_st;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t /*stream*/, cudaGraph_t* graph) {
  *graph = std::exchange(fake::captured, nullptr);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t /*stream*/) {
  ++fake::launches;
  for (const auto& work : executable->work) work();
  return cudaSuccess;
}

}  // extern "C"
