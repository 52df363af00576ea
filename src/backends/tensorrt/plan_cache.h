// Engines that were built before, as files of one folder. What a file is called tells all that it
// depends on, so that another model, version or GPU never finds it; what is damaged is as if it
// were not there. They are code, so a folder that others may write is as if there were none.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/tensorrt/engine_shape.h"
#include "base/environment.h"
#include "base/hash.h"

namespace trtmc::tensorrt {

// All that an engine depends on.
struct PlanKey {
  Sha256Digest model;    // Bundle::identity().
  std::string tensorrt;  // "10.14.1"
  std::string gpu;       // "NVIDIA H200, compute capability 9.0"
  DecoderRoute route;
  DType precision;
  std::vector<int> fp32_layers;
  EngineShape shape;
};

std::string plan_name(const PlanKey& key);  // "4be1…d7.plan"
// What was measured while building depends on less: "9a03…41.timing".
std::string timing_name(std::string_view tensorrt, std::string_view gpu);

// $XDG_CACHE_HOME/trtmc/tensorrt, else ~/.cache/trtmc/tensorrt; nothing without a home.
std::optional<std::filesystem::path> plan_folder(const Environment& environment);

class PlanCache {
 public:
  // Nothing: keeps nothing.
  explicit PlanCache(std::optional<std::filesystem::path> folder);

  // Nothing if there is none, or if it is damaged or others may write it, which is logged.
  std::optional<std::vector<std::byte>> find(const std::string& name) const;
  // Makes the folder, for the user alone. That it can't be kept is logged and no more.
  void keep(const std::string& name, std::span<const std::byte> bytes) const;

 private:
  std::optional<std::filesystem::path> folder_;
};

}  // namespace trtmc::tensorrt
