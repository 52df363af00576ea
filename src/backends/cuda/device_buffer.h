// Memory for `count` values of T, of the device or of the host where the device can read it, freed
// with the object. Moves, does not copy.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "backends/cuda/check_cuda.h"

namespace trtmc::cuda {

template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // Zero bytes, if asked for. Throws kExhausted naming `what` it is for.
  DeviceBuffer(size_t count, std::string_view what, bool zeroed = false) : count_(count) {
    if (count == 0) return;
    check_cuda(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), what);
    if (zeroed) check_cuda(cudaMemset(data_, 0, count * sizeof(T)), what);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~DeviceBuffer() { cudaFree(data_); }

  T* data() const { return data_; }
  size_t count() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

template <typename T>
class PinnedBuffer {
 public:
  PinnedBuffer(size_t count, std::string_view what) : count_(count) {
    check_cuda(cudaMallocHost(reinterpret_cast<void**>(&data_), count * sizeof(T)), what);
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() { cudaFreeHost(data_); }

  T* data() const { return data_; }
  std::span<T> span() const { return {data_, count_}; }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

}  // namespace trtmc::cuda
