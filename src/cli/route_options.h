// What the decoder routes of a bundle are asked for: options of `inspect`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/command_parser.h"
#include "graph/decoder_route.h"
#include "tensor/dtype.h"

namespace trtmc {

struct RouteOptions {
  std::optional<DType> precision;  // Nothing: as the weights are stored.
  std::vector<int> fp32_layers;    // Rising.
  int context_length = 0;          // 0: the model's own.
  TensorRtVersion tensorrt = kNewestTensorRt;
  uint64_t gpu_memory_bytes = 0;  // Free memory; 0: not known.
};

// --precision
void declare_precision(CommandParser& parser, std::optional<DType>& precision);
// --fp32-layer, repeatable; `layers` are rising afterwards, whatever the order they are given in.
// of: whose layers they are, for the help.
void declare_fp32_layers(CommandParser& parser, std::vector<int>& layers,
                         std::string_view of = "tensorrt");
// These two, --context, --tensorrt and --gpu-memory, under a heading.
void declare_routes(CommandParser& parser, RouteOptions& routes);

// After parse(): throws if one of them is given.
void refuse_routes(const CommandParser& parser, std::string_view when);

}  // namespace trtmc
