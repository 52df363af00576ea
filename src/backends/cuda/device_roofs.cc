#include "backends/cuda/device_roofs.h"

#include "backends/cuda/device_buffer.h"
#include "backends/cuda/kernels/probe.h"

namespace trtmc::cuda {
namespace {

constexpr std::string_view kDoing = "measuring the GPU";
constexpr size_t kCopyBytes = size_t{2} << 30;

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

// Bytes read and written, over the time; half of what is free of memory is enough.
double copy_bandwidth(Timer& timer, CUstream_st* stream) {
  size_t free_bytes = 0, total_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), kDoing);
  const size_t bytes = std::min(kCopyBytes, free_bytes / 4);
  const DeviceBuffer<std::byte> from(bytes, kDoing), to(bytes, kDoing);
  const double seconds = timer.seconds(
      [&] { cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream); });
  return 2.0 * static_cast<double>(bytes) / seconds;
}

}  // namespace

DeviceRoofs measure_device_roofs(const void* memory, uint64_t bytes, int multiprocessors,
                                 CUstream_st* stream) {
  const DeviceBuffer<uint32_t> sink(1, kDoing);
  const Launch how{.stream = stream, .overlaps = false};
  Timer timer(stream);
  DeviceRoofs roofs{};
  const double read_seconds = timer.seconds([&] {
    launch_read({.from = memory, .bytes = bytes / 16 * 16, .sink = sink.data()}, multiprocessors,
                how);
  });
  roofs.read_bytes_per_second = static_cast<double>(bytes) / read_seconds;
  roofs.copy_bytes_per_second = copy_bandwidth(timer, stream);
  double operations = 0;
  const double multiply_seconds =
      timer.seconds([&] { operations = launch_multiply(sink.data(), multiprocessors, how); });
  roofs.operations_per_second = operations / multiply_seconds;
  return roofs;
}

}  // namespace trtmc::cuda
