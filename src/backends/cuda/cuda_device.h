// The first CUDA device, and a stream on it.
#pragma once

#include "backends/cuda/check_cuda.h"

namespace trtmc::cuda {

// Looks at the device; loads nothing onto it. Throws nothing.
DeviceProbe probe_device();

class Stream {
 public:
  Stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace trtmc::cuda
