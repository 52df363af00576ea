#include "graph/decoder_route.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "model/tensor_key.h"

namespace trtmc {
namespace {

constexpr std::array kRoutes = {DecoderRoute::kNativeKv, DecoderRoute::kStandard,
                                DecoderRoute::kDualProfile};
constexpr std::string_view kNames[] = {"native_kv", "standard", "dual_profile"};

// TensorRT counts the elements of a tensor in 31 bits.
constexpr double kMostElements = std::numeric_limits<int32_t>::max();

int capacity_of(const RouteQuestion& question) {
  return question.capacity > 0 ? question.capacity : question.spec.context_length;
}

RouteReason judge_precision(const RouteQuestion& question, DecoderRoute route) {
  const bool fits = route != DecoderRoute::kNativeKv || question.precision == DType::kBF16;
  const std::string name(dtype_name(question.precision));
  return {fits, "precision", fits ? name : name + ", but fused attention is taken in bf16 only"};
}

RouteReason judge_quantization(const RouteQuestion& question, DecoderRoute route) {
  constexpr std::string_view kSubject = "quantisation";
  if (question.quantization == "none") return {true, std::string(kSubject), "none"};
  if (route == DecoderRoute::kNativeKv) {
    return {false, std::string(kSubject),
            fmt::format("{} weights, but only unquantised ones are taken", question.quantization)};
  }
  return {true, std::string(kSubject),
          fmt::format("{} weights, worked out as {} when the engine is built",
                      question.quantization, dtype_name(question.precision))};
}

RouteReason judge_activation(const RouteQuestion& question, DecoderRoute /*route*/) {
  const bool fits = question.activation == "silu";
  return {fits, "activation",
          fits ? question.activation : question.activation + ", but the graph has silu only"};
}

RouteReason judge_biases(const RouteQuestion& question, DecoderRoute /*route*/) {
  return {!question.biases, "biases",
          question.biases ? "projections have some, but the graph has none" : "none"};
}

RouteReason judge_heads(const RouteQuestion& question, DecoderRoute route) {
  const int width = question.spec.head_dim;
  const bool fits = route != DecoderRoute::kNativeKv || width == 64 || width == 128;
  return {fits, "heads",
          fits ? fmt::format("{} wide", width)
               : fmt::format("{} wide, but fused attention has widths of 64 and 128", width)};
}

RouteReason judge_attention(const RouteQuestion& question, DecoderRoute route) {
  const auto windows = std::ranges::count_if(
      question.spec.layers, [](const LayerSpec& layer) { return layer.sliding_window > 0; });
  if (windows == 0) return {true, "attention", "full in every layer"};
  const std::string some =
      fmt::format("a sliding window in {} of {} layers", windows, question.spec.num_layers());
  if (route == DecoderRoute::kNativeKv) {
    return {false, "attention", some + ", but only full attention is taken"};
  }
  return {true, "attention", some + ", by a mask"};
}

std::string rope_name(const RopeSpec& rope) {
  if (const auto* yarn = std::get_if<YarnScaling>(&rope.scaling)) {
    return fmt::format("YaRN by {}", yarn->factor);
  }
  if (const auto* llama = std::get_if<Llama3Scaling>(&rope.scaling)) {
    return fmt::format("Llama 3 scaling by {}", llama->factor);
  }
  return "unscaled";
}

// Every scaling is a table of cos and sin like any other: it can't get lost on a route.
RouteReason judge_rope(const RouteQuestion& question, DecoderRoute /*route*/) {
  const auto resting = std::ranges::count_if(question.spec.layers,
                                             [](const LayerSpec& layer) { return !layer.rope; });
  std::string text = rope_name(question.spec.rope) + ", as tables of cos and sin";
  if (resting > 0) {
    text += fmt::format("; {} of {} layers do not rotate", resting, question.spec.num_layers());
  }
  return {true, "rope", text};
}

RouteReason judge_fp32_layers(const RouteQuestion& question, DecoderRoute /*route*/) {
  if (question.fp32_layers.empty()) return {true, "fp32 layers", "none"};
  return {true, "fp32 layers",
          fmt::format("{}, their keys and values too", fmt::join(question.fp32_layers, ", "))};
}

RouteReason judge_capacity(const RouteQuestion& question, DecoderRoute route) {
  const int capacity = capacity_of(question);
  const double elements = double{1} * capacity * question.spec.kv_width();
  if (elements > kMostElements) {
    return {false, "capacity",
            fmt::format("{} tokens make {:.1f} G keys a layer, but a tensor has at most 2.1 G",
                        capacity, elements / 1e9)};
  }
  const std::string_view cost = route == DecoderRoute::kNativeKv
                                    ? "a step reads the tokens in use, to the next 256"
                                    : "a step copies the tokens in use";
  return {true, "capacity", fmt::format("{} tokens, chosen at load; {}", capacity, cost)};
}

// Bytes of the weights and of the keys and values of one sequence, in double: of any spec.
struct RouteBytes {
  double weights = 0;
  double kv = 0;
};

RouteBytes route_bytes(const RouteQuestion& question) {
  const std::vector<DType> types =
      layer_precisions(question.spec, question.precision, question.fp32_layers);
  const auto bytes_of = [&](int layer) {
    const DType type = layer < 0 ? question.precision : types[static_cast<size_t>(layer)];
    return static_cast<double>(element_bytes(type));
  };
  RouteBytes bytes;
  for (const TensorKey& key : tensor_keys(question.spec)) {
    const auto elements = static_cast<double>(num_elements(tensor_shape(question.spec, key)));
    bytes.weights += elements * bytes_of(key.layer);
  }
  for (int layer = 0; layer < question.spec.num_layers(); ++layer) {
    bytes.kv += 2.0 * question.spec.kv_width() * capacity_of(question) * bytes_of(layer);
  }
  return bytes;
}

RouteReason judge_memory(const RouteQuestion& question, DecoderRoute route) {
  constexpr double kGiga = 1e9;
  const RouteBytes bytes = route_bytes(question);
  const int weight_copies = route == DecoderRoute::kStandard ? 2 : 1;
  const int kv_copies = route == DecoderRoute::kNativeKv ? 1 : 2;
  const double needed = weight_copies * bytes.weights + kv_copies * bytes.kv;
  const std::string what =
      fmt::format("{:.3g} GB: weights {}, keys and values {}", needed / kGiga,
                  weight_copies == 1 ? "once" : "twice", kv_copies == 1 ? "once" : "twice");
  if (question.device_bytes == 0) return {true, "memory", what};
  const auto free = static_cast<double>(question.device_bytes);
  const bool fits = needed <= free;
  return {fits, "memory",
          fmt::format("{}{} {:.3g} GB free", what, fits ? ", of" : ", but there are only",
                      free / kGiga)};
}

RouteReason judge_version(const RouteQuestion& question, DecoderRoute route) {
  const TensorRtVersion version = question.version;
  const TensorRtVersion oldest =
      route == DecoderRoute::kNativeKv ? kNativeKvTensorRt : kOldestTensorRt;
  const std::string name = fmt::format("{}.{}", version.major, version.minor);
  if (version < oldest) {
    return {
        false, "TensorRT",
        fmt::format("{}, but {}.{} is the first with {}", name, oldest.major, oldest.minor,
                    route == DecoderRoute::kNativeKv ? "KV-update layers" : "attention layers")};
  }
  if (version.major > kNewestTensorRt.major) {
    return {false, "TensorRT",
            fmt::format("{}, but {} is the last that is known", name, kNewestTensorRt.major)};
  }
  return {true, "TensorRT", name};
}

constexpr RouteReason (*kJudges[])(const RouteQuestion&, DecoderRoute) = {
    judge_precision, judge_quantization, judge_activation, judge_biases,
    judge_heads,     judge_attention,    judge_rope,       judge_fp32_layers,
    judge_capacity,  judge_memory,       judge_version};

void check(const RouteQuestion& question) {
  if (question.capacity < 0 || question.capacity > question.spec.context_length) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a context of {} tokens was asked for, but the model has {}",
                            question.capacity, question.spec.context_length));
  }
}

}  // namespace

std::string_view decoder_route_name(DecoderRoute route) { return kNames[static_cast<int>(route)]; }

bool RouteVerdict::possible() const {
  return std::ranges::all_of(reasons, &RouteReason::in_favour);
}

std::optional<DecoderRoute> RouteDecision::taken() const {
  const auto found = std::ranges::find_if(verdicts, &RouteVerdict::possible);
  if (found == verdicts.end()) return std::nullopt;
  return found->route;
}

std::string RouteDecision::refusal() const {
  std::string text;
  for (const RouteVerdict& verdict : verdicts) {
    for (const RouteReason& reason : verdict.reasons) {
      if (reason.in_favour) continue;
      text += fmt::format("{}{}: {}: {}", text.empty() ? "" : "; ",
                          decoder_route_name(verdict.route), reason.subject, reason.text);
    }
  }
  return text;
}

RouteDecision choose_decoder_route(const RouteQuestion& question) {
  check(question);
  RouteDecision decision;
  for (const DecoderRoute route : kRoutes) {
    RouteVerdict verdict{.route = route, .reasons = {}};
    for (const auto judge : kJudges) verdict.reasons.push_back(judge(question, route));
    decision.verdicts.push_back(std::move(verdict));
  }
  return decision;
}

DType stored_precision(const Bundle& bundle) {
  const DType stored = bundle.weight({Role::kQProj, 0}).dtype;
  return is_quantized(stored) ? DType::kBF16 : stored;
}

void check_fp32_layers(const DecoderSpec& spec, const std::vector<int>& fp32_layers) {
  int previous = -1;
  for (const int layer : fp32_layers) {
    if (layer < 0 || layer >= spec.num_layers()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("float32 was asked for in layer {}, but the model has layers 0 to {}",
                              layer, spec.num_layers() - 1));
    }
    if (layer <= previous) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("float32 was asked for in layer {} after layer {}, expected rising "
                              "numbers",
                              layer, previous));
    }
    previous = layer;
  }
}

std::vector<DType> layer_precisions(const DecoderSpec& spec, DType precision,
                                    const std::vector<int>& fp32_layers) {
  if (is_quantized(precision)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a precision of {}, expected f32, f16 or bf16", dtype_name(precision)));
  }
  check_fp32_layers(spec, fp32_layers);
  std::vector<DType> types(spec.layers.size(), precision);
  for (const int layer : fp32_layers) types[static_cast<size_t>(layer)] = DType::kF32;
  return types;
}

}  // namespace trtmc
