#include "backends/cuda/device_roofs.h"

#include <algorithm>

#include "backends/cuda/device_buffer.h"
#include "backends/cuda/kernels/probe.h"

namespace trtmc::cuda {
namespace {

constexpr std::string_view kDoing = "measuring the GPU";
constexpr size_t kMostBytes = size_t{2} << 30;
constexpr int kRepeats = 3;

class Timer {
 public:
  explicit Timer(CUstream_st* stream) : stream_(stream) {
    check_cuda(cudaEventCreate(&start_), kDoing);
    check_cuda(cudaEventCreate(&end_), kDoing);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(end_);
  }

  template <typename Body>
  double seconds(Body body) {
    check_cuda(cudaEventRecord(start_, stream_), kDoing);
    body();
    check_cuda(cudaGetLastError(), kDoing);
    check_cuda(cudaEventRecord(end_, stream_), kDoing);
    check_cuda(cudaEventSynchronize(end_), kDoing);
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start_, end_), kDoing);
    return milliseconds * 1e-3;
  }

 private:
  CUstream_st* stream_;
  cudaEvent_t start_ = nullptr, end_ = nullptr;
};

// The shortest of a few: the first of them wakes the device up.
template <typename Body>
double shortest_seconds(Timer& timer, Body body) {
  double shortest = timer.seconds(body);
  for (int i = 1; i < kRepeats; ++i) shortest = std::min(shortest, timer.seconds(body));
  return shortest;
}

// As much as is worth measuring, filled with `pattern` again and again: zeros would be faster.
DeviceBuffer<std::byte> filled_buffer(size_t bytes, const void* pattern, size_t pattern_bytes) {
  DeviceBuffer<std::byte> buffer(bytes, kDoing);
  for (size_t at = 0; at < bytes; at += pattern_bytes) {
    check_cuda(cudaMemcpy(buffer.data() + at, pattern, std::min(pattern_bytes, bytes - at),
                          cudaMemcpyDeviceToDevice),
               kDoing);
  }
  return buffer;
}

}  // namespace

DeviceRoofs measure_device_roofs(const void* memory, uint64_t bytes, int multiprocessors,
                                 CUstream_st* stream) {
  const DeviceBuffer<uint32_t> sink(1, kDoing);
  const Launch how{.stream = stream, .overlaps = false};
  Timer timer(stream);
  DeviceRoofs roofs{};
  size_t free_bytes = 0, total_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), kDoing);
  const size_t size = std::min(kMostBytes, free_bytes / 4) / 16 * 16;
  const DeviceBuffer<std::byte> from = filled_buffer(size, memory, bytes);
  const DeviceBuffer<std::byte> to(size, kDoing);
  const double read_seconds = shortest_seconds(timer, [&] {
    launch_read({.from = from.data(), .bytes = size, .sink = sink.data()}, multiprocessors, how);
  });
  roofs.read_bytes_per_second = static_cast<double>(size) / read_seconds;
  const double copy_seconds = shortest_seconds(timer, [&] {
    cudaMemcpyAsync(to.data(), from.data(), size, cudaMemcpyDeviceToDevice, stream);
  });
  roofs.copy_bytes_per_second = 2.0 * static_cast<double>(size) / copy_seconds;
  // Memory that copies at a rate can be read at it, whatever the reading kernel reached.
  roofs.read_bytes_per_second = std::max(roofs.read_bytes_per_second, roofs.copy_bytes_per_second);
  double operations = 0;
  const double multiply_seconds = shortest_seconds(
      timer, [&] { operations = launch_multiply(sink.data(), multiprocessors, how); });
  roofs.operations_per_second = operations / multiply_seconds;
  return roofs;
}

}  // namespace trtmc::cuda
