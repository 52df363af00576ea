// Prints a JSON array of what the TensorRT backend would build for a small model: of every route
// and type the graph as text, with the lengths that its engines are built for. rtx_build_test.py
// builds them.
#include <cstdio>

#include "backends/tensorrt/engine_shape.h"
#include "base/json.h"
#include "graph/recording_sink.h"

namespace trtmc::tensorrt {
namespace {

constexpr int kCapacity = 1024;
constexpr int kMostTokens = 128;

DecoderSpec small_spec() {
  DecoderSpec spec{.vocab_size = 512,
                   .hidden_size = 256,
                   .intermediate_size = 640,
                   .num_heads = 8,
                   .num_kv_heads = 2,
                   .head_dim = 64,
                   .context_length = kCapacity,
                   .rms_norm_eps = 1e-6F,
                   .tied_embeddings = true,
                   .rope = {.theta = 10000, .rotary_dim = 64, .scaling = {}},
                   .layers = {{true, 0}, {false, 0}, {true, 0}}};
  return spec;
}

Json to_json(const EngineShape& shape) {
  Json fixed;
  for (const auto& [axis, length] : shape.fixed) fixed.set(axis, length);
  Json::Array profiles;
  for (const EngineProfile& profile : shape.profiles) {
    Json json;
    for (const auto& [axis, range] : profile) {
      json.set(axis, Json::Array{range.least, range.usual, range.most});
    }
    profiles.push_back(std::move(json));
  }
  Json json;
  json.set("fixed", std::move(fixed));
  json.set("profiles", std::move(profiles));
  return json;
}

Json to_json(const std::string& name, const DecoderSpec& spec, DecoderRoute route, ElementType type,
             std::vector<int> fp32_layers) {
  GraphForm form = graph_form(route, type);
  form.fp32_layers = std::move(fp32_layers);
  Json weights;
  for (const TensorKey& key : tensor_keys(spec)) {
    const Shape shape = tensor_shape(spec, key);
    weights.set(to_string(key), Json::Array(shape.begin(), shape.end()));
  }
  Json::Array engines;
  for (const EngineShape& shape : engines_of(route, kCapacity, kMostTokens)) {
    engines.push_back(to_json(shape));
  }
  Json json;
  json.set("name", std::string(decoder_route_name(route)) + " " +
                       std::string(element_type_name(type)) + name);
  json.set("type", element_type_name(type));
  json.set("fp32_layers", Json::Array(form.fp32_layers.begin(), form.fp32_layers.end()));
  json.set("head_dim", spec.head_dim);
  json.set("weights", std::move(weights));
  json.set("engines", std::move(engines));
  json.set("graph", record_as_text(spec, form, true));
  return json;
}

Json::Array all_builds() {
  using enum ElementType;
  Json::Array builds;
  for (const auto route :
       {DecoderRoute::kNativeKv, DecoderRoute::kStandard, DecoderRoute::kDualProfile}) {
    for (const ElementType type : {kFloat32, kFloat16, kBFloat16}) {
      builds.push_back(to_json("", small_spec(), route, type, {}));
    }
    builds.push_back(to_json(", layer 1 in f32", small_spec(), route, kBFloat16, {1}));
    DecoderSpec yarn = small_spec();
    yarn.rope.scaling = YarnScaling{2, 32, 1, 1.0693147180559945, kCapacity / 2, true};
    builds.push_back(to_json(", YaRN", yarn, route, kBFloat16, {}));
  }
  DecoderSpec windows = small_spec();
  windows.layers[0].sliding_window = 100;
  builds.push_back(to_json(", a window", windows, DecoderRoute::kDualProfile, kBFloat16, {}));
  return builds;
}

}  // namespace
}  // namespace trtmc::tensorrt

int main() {
  std::puts(trtmc::Json(trtmc::tensorrt::all_builds()).dump().c_str());
  return 0;
}
