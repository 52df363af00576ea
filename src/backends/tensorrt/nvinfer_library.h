// The functions of libnvinfer, opened when TensorRT is first asked for and never closed: nothing is
// linked, so the module can be opened where there is no TensorRT.
#pragma once

#include <NvInfer.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "backends/tensorrt/library_version.h"

namespace trtmc::tensorrt {

// Objects of TensorRT are deleted as any other.
template <typename T>
using Owned = std::unique_ptr<T>;

class NvInferLibrary {
 public:
  // What libnvinfer exports; the classes are made through these.
  struct Functions {
    void* (*create_builder)(void* logger, int32_t version) noexcept;
    void* (*create_runtime)(void* logger, int32_t version) noexcept;
    void* (*create_refitter)(void* engine, void* logger, int32_t version) noexcept;
    int32_t (*version)() noexcept;
  };

  explicit NvInferLibrary(const Functions& functions) : functions_(functions) {}

  // All of these throw kUnsupported if TensorRT refuses.
  Owned<nvinfer1::IBuilder> make_builder(nvinfer1::ILogger& logger) const;
  Owned<nvinfer1::IRuntime> make_runtime(nvinfer1::ILogger& logger) const;
  Owned<nvinfer1::IRefitter> make_refitter(nvinfer1::ICudaEngine& engine,
                                           nvinfer1::ILogger& logger) const;
  int version() const { return functions_.version(); }  // 101401: 10.14.1.
  // As far as this build knows it: of a later library only what it was compiled against is used.
  TensorRtVersion known_version() const {
    return std::min(version_of(version()), {NV_TENSORRT_MAJOR, NV_TENSORRT_MINOR});
  }

 private:
  Functions functions_;
};

// The one of this process, or why there is none.
struct OpenedLibrary {
  std::optional<NvInferLibrary> nvinfer;
  std::string trouble;
};
const OpenedLibrary& opened_library();

}  // namespace trtmc::tensorrt
