// TensorRT as far as the backend uses it: builds what it is given by checking it, and runs it by
// computing what NvInfer.h says of each layer, on the CPU, in memory of fake_cuda.h. What the
// backend does not use aborts.
#pragma once

#include "backends/tensorrt/nvinfer_library.h"

namespace trtmc::fake_nvinfer {

// As if libnvinfer of this version had been opened.
tensorrt::NvInferLibrary library(int version);

// Since the program started.
struct Counts {
  int builds = 0;  // Engines.
  int refits = 0;
  int attentions = 0;    // Layers of attention that were run,
  int64_t attended = 0;  // and the tokens that they read.
};
Counts& counts();

// Every profile and flag of what was built last, a line each, for tests to look at.
const std::string& last_build();

}  // namespace trtmc::fake_nvinfer
