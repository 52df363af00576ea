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

// Writes both files into `folder`, which is there, and returns their bytes. Memory does not grow
// with the weights: what is held are the tables of rotations, 256 MiB each at most, and a piece of
// 128 MiB. Throws kExhausted for a disk that is too small, before the work; kUnsupported for a
// weight that the type can't hold (not of quantised ones, whose codes are written) and for a
// context whose tables are larger; kInvalidArgument for a layer that the model does not have.
uint64_t export_onnx(const Bundle& bundle, const OnnxOptions& options,
                     const std::filesystem::path& folder, ThreadPool& pool,
                     const ExportProgress& progress);

}  // namespace trtmc
