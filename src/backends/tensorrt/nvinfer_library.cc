#include "backends/tensorrt/nvinfer_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "backends/tensorrt/library_version.h"
#include "base/error.h"

namespace trtmc::tensorrt {
namespace {

template <typename T>
Owned<T> checked(void* object, const char* what) {
  if (object == nullptr) {
    throw Error(ErrorCode::kUnsupported, fmt::format("TensorRT makes no {}", what),
                "--verbose prints what it says");
  }
  return Owned<T>(static_cast<T*>(object));
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

OpenedLibrary open_library() {
  const std::string name = library_name(NV_TENSORRT_MAJOR);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return {std::nullopt, missing_library(NV_TENSORRT_MAJOR, reason == nullptr ? name : reason)};
  }
  NvInferLibrary::Functions functions{};
  if (!find(library, "createInferBuilder_INTERNAL", functions.create_builder) ||
      !find(library, "createInferRuntime_INTERNAL", functions.create_runtime) ||
      !find(library, "createInferRefitter_INTERNAL", functions.create_refitter) ||
      !find(library, "getInferLibVersion", functions.version)) {
    return {std::nullopt, fmt::format("{} is no library of TensorRT", name)};
  }
  if (auto refusal = version_refusal(functions.version(), {NV_TENSORRT_MAJOR, NV_TENSORRT_MINOR})) {
    return {std::nullopt, *refusal};
  }
  return {NvInferLibrary(functions), {}};
}

}  // namespace

Owned<nvinfer1::IBuilder> NvInferLibrary::make_builder(nvinfer1::ILogger& logger) const {
  return checked<nvinfer1::IBuilder>(functions_.create_builder(&logger, NV_TENSORRT_VERSION),
                                     "builder");
}

Owned<nvinfer1::IRuntime> NvInferLibrary::make_runtime(nvinfer1::ILogger& logger) const {
  return checked<nvinfer1::IRuntime>(functions_.create_runtime(&logger, NV_TENSORRT_VERSION),
                                     "runtime");
}

Owned<nvinfer1::IRefitter> NvInferLibrary::make_refitter(nvinfer1::ICudaEngine& engine,
                                                         nvinfer1::ILogger& logger) const {
  return checked<nvinfer1::IRefitter>(
      functions_.create_refitter(&engine, &logger, NV_TENSORRT_VERSION), "refitter");
}

const OpenedLibrary& opened_library() {
  static const OpenedLibrary kOpened = open_library();
  return kOpened;
}

}  // namespace trtmc::tensorrt
