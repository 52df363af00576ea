// A bundle's decoder as an ONNX model: docs/onnx.md.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "base/thread_pool.h"
#include "bundle/bundle.h"
#include "graph/network_sink.h"

namespace trtmc {

inline constexpr std::string_view kOnnxFile = "model.onnx";
inline constexpr std::string_view kOnnxDataFile = "model.onnx_data";

struct OnnxOptions {
  ElementType type = ElementType::kFloat32;  // Of weights, activations, keys and values, logits.
  std::vector<int> fp32_layers = {};         // Layers of float32 whatever the type; rising.
  // Norms and rotations as the plain operations they are composed of, as TensorRT gets them.
  bool composed = false;
};

// Called with bytes done and bytes in all, from the calling thread.
using ExportProgress = std::function<void(uint64_t done, uint64_t total)>;

// Writes both files into `folder`, which is there. Memory stays under 1 GB whatever the model's
// size. Throws kExhausted for a disk that is too small, before the work; kUnsupported for a weight
// that the type can't hold; kInvalidArgument for a layer that the model does not have.
void export_onnx(const Bundle& bundle, const OnnxOptions& options,
                 const std::filesystem::path& folder, ThreadPool& pool,
                 const ExportProgress& progress);

}  // namespace trtmc
