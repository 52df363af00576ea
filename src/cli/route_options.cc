#include "cli/route_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "cli/option_values.h"

namespace trtmc {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr DType kPrecisionTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr std::string_view kPrecisions[] = {"f32", "f16", "bf16"};
static_assert(std::size(kPrecisionTypes) == std::size(kPrecisions));

// "10.14"
TensorRtVersion parse_version(std::string_view text) {
  constexpr int kMostVersion = 999;
  const size_t point = text.find('.');
  if (point == std::string_view::npos) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\", expected MAJOR.MINOR such as 10.14", text));
  }
  return {static_cast<int>(parse_integer(text.substr(0, point), 0, kMostVersion)),
          static_cast<int>(parse_integer(text.substr(point + 1), 0, kMostVersion))};
}

void insert_rising(std::vector<int>& layers, int layer) {
  const auto place = std::ranges::lower_bound(layers, layer);
  if (place == layers.end() || *place != layer) layers.insert(place, layer);
}

}  // namespace

void declare_precision(CommandParser& parser, std::optional<DType>& precision) {
  parser.option("--precision", "TYPE",
                "what tensorrt computes in: f32, f16 or bf16 (default: as the weights are stored)",
                [&precision](const std::string& text) {
                  precision = kPrecisionTypes[parse_name(text, kPrecisions)];
                });
  parser.choices({std::begin(kPrecisions), std::end(kPrecisions)});
}

void declare_fp32_layers(CommandParser& parser, std::vector<int>& layers, std::string_view of) {
  parser.repeatable("--fp32-layer", "N",
                    fmt::format("keep layer N of {}, from 0 on, in float32; repeatable", of),
                    [&layers](const std::string& text) {
                      insert_rising(layers, static_cast<int>(parse_integer(text, 0, kMaxInt)));
                    });
}

void declare_routes(CommandParser& parser, RouteOptions& routes) {
  parser.group("What the routes through TensorRT are asked for");
  declare_precision(parser, routes.precision);
  declare_fp32_layers(parser, routes.fp32_layers);
  parser.option("--context", "N", "tokens of context (default: the model's own)",
                [&routes](const std::string& text) {
                  routes.context_length = static_cast<int>(parse_integer(text, 1, kMaxInt));
                });
  parser.option("--tensorrt", "VERSION",
                fmt::format("a version such as 10.14 (default: {}.{})", kNewestTensorRt.major,
                            kNewestTensorRt.minor),
                [&routes](const std::string& text) { routes.tensorrt = parse_version(text); });
  parser.option("--gpu-memory", "SIZE",
                "what the GPU has free: bytes, or 8GiB (default: enough for any route)",
                [&routes](const std::string& text) {
                  routes.gpu_memory_bytes = parse_bytes(text);
                  if (routes.gpu_memory_bytes == 0) {
                    throw Error(ErrorCode::kInvalidArgument, "0, expected a size above 0");
                  }
                });
}

void refuse_routes(const CommandParser& parser, std::string_view when) {
  for (const std::string_view name :
       {"--precision", "--fp32-layer", "--context", "--tensorrt", "--gpu-memory"}) {
    parser.refuse_without_effect(name, when);
  }
}

}  // namespace trtmc
