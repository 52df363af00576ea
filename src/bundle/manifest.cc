#include "bundle/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/error.h"
#include "bundle/quant_scheme.h"

namespace trtmc {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

Json scaling_to_json(const RopeSpec& rope) {
  Json json;
  if (const auto* yarn = std::get_if<YarnScaling>(&rope.scaling)) {
    json.set("type", "yarn");
    json.set("factor", yarn->factor);
    json.set("beta_fast", yarn->beta_fast);
    json.set("beta_slow", yarn->beta_slow);
    json.set("attention_factor", yarn->attention_factor);
    json.set("original_context", yarn->original_context);
    json.set("truncate", yarn->truncate);
  } else if (const auto* llama3 = std::get_if<Llama3Scaling>(&rope.scaling)) {
    json.set("type", "llama3");
    json.set("factor", llama3->factor);
    json.set("low_freq_factor", llama3->low_freq_factor);
    json.set("high_freq_factor", llama3->high_freq_factor);
    json.set("original_context", llama3->original_context);
  }
  return json;
}

int read_size(const JsonCursor& object, std::string_view key) {
  return static_cast<int>(object.at(key).integer_in(1, kMaxInt));
}

RopeSpec read_rope(const JsonCursor& json) {
  json.refuse_unknown_keys({"theta", "rotary_dim", "scaling"});
  RopeSpec rope{json.at("theta").number(), read_size(json, "rotary_dim"), {}};
  const JsonCursor scaling = json.at("scaling");
  if (scaling.is_null()) return rope;
  const std::string& type = scaling.at("type").string();
  if (type == "yarn") {
    scaling.refuse_unknown_keys({"type", "factor", "beta_fast", "beta_slow", "attention_factor",
                                 "original_context", "truncate"});
    rope.scaling = YarnScaling{.factor = scaling.at("factor").number(),
                               .beta_fast = scaling.at("beta_fast").number(),
                               .beta_slow = scaling.at("beta_slow").number(),
                               .attention_factor = scaling.at("attention_factor").number(),
                               .original_context = read_size(scaling, "original_context"),
                               .truncate = scaling.at("truncate").boolean()};
  } else if (type == "llama3") {
    scaling.refuse_unknown_keys(
        {"type", "factor", "low_freq_factor", "high_freq_factor", "original_context"});
    rope.scaling = Llama3Scaling{.factor = scaling.at("factor").number(),
                                 .low_freq_factor = scaling.at("low_freq_factor").number(),
                                 .high_freq_factor = scaling.at("high_freq_factor").number(),
                                 .original_context = read_size(scaling, "original_context")};
  } else {
    scaling.at("type").fail(fmt::format("\"{}\", expected \"yarn\" or \"llama3\"", type));
  }
  return rope;
}

DecoderSpec read_spec(const JsonCursor& json) {
  json.refuse_unknown_keys({"vocab_size", "hidden_size", "intermediate_size", "num_heads",
                            "num_kv_heads", "head_dim", "context_length", "rms_norm_eps",
                            "tied_embeddings", "rope", "layers"});
  DecoderSpec spec{.vocab_size = read_size(json, "vocab_size"),
                   .hidden_size = read_size(json, "hidden_size"),
                   .intermediate_size = read_size(json, "intermediate_size"),
                   .num_heads = read_size(json, "num_heads"),
                   .num_kv_heads = read_size(json, "num_kv_heads"),
                   .head_dim = read_size(json, "head_dim"),
                   .context_length = read_size(json, "context_length"),
                   .rms_norm_eps = static_cast<float>(json.at("rms_norm_eps").number()),
                   .tied_embeddings = json.at("tied_embeddings").boolean(),
                   .rope = read_rope(json.at("rope")),
                   .layers = {}};
  for (const JsonCursor& layer : json.at("layers").elements()) {
    layer.refuse_unknown_keys({"rope", "sliding_window"});
    spec.layers.push_back({layer.at("rope").boolean(),
                           static_cast<int>(layer.at("sliding_window").integer_in(0, kMaxInt))});
  }
  return spec;
}

Json to_json(const SamplingParams& sampling) {
  Json json;
  json.set("temperature", sampling.temperature);
  json.set("top_k", sampling.top_k);
  json.set("top_p", sampling.top_p);
  json.set("min_p", sampling.min_p);
  json.set("repetition_penalty", sampling.repetition_penalty);
  json.set("presence_penalty", sampling.presence_penalty);
  json.set("frequency_penalty", sampling.frequency_penalty);
  return json;
}

SamplingParams read_sampling(const JsonCursor& json) {
  json.refuse_unknown_keys({"temperature", "top_k", "top_p", "min_p", "repetition_penalty",
                            "presence_penalty", "frequency_penalty"});
  SamplingParams sampling;
  sampling.temperature = json.at("temperature").number();
  sampling.top_k = static_cast<int>(json.at("top_k").integer_in(0, kMaxInt));
  sampling.top_p = json.at("top_p").number();
  sampling.min_p = json.at("min_p").number();
  sampling.repetition_penalty = json.at("repetition_penalty").number();
  sampling.presence_penalty = json.at("presence_penalty").number();
  sampling.frequency_penalty = json.at("frequency_penalty").number();
  return sampling;
}

Json to_json(const OutputMarkers& markers) {
  Json json;
  json.set("think_open", markers.think_open);
  json.set("think_close", markers.think_close);
  json.set("tool_open", markers.tool_open);
  json.set("tool_close", markers.tool_close);
  return json;
}

OutputMarkers read_markers(const JsonCursor& json) {
  json.refuse_unknown_keys({"think_open", "think_close", "tool_open", "tool_close"});
  return {json.at("think_open").string(), json.at("think_close").string(),
          json.at("tool_open").string(), json.at("tool_close").string()};
}

Json to_json(const FileHash& file) {
  Json json;
  json.set("name", file.name);
  json.set("bytes", file.bytes);
  json.set("sha256", file.sha256);
  return json;
}

FileHash read_file_hash(const JsonCursor& json) {
  json.refuse_unknown_keys({"name", "bytes", "sha256"});
  return {
      json.at("name").string(),
      static_cast<uint64_t>(json.at("bytes").integer_in(0, std::numeric_limits<int64_t>::max())),
      json.at("sha256").string()};
}

Manifest read_manifest(const JsonCursor& json) {
  json.refuse_unknown_keys({"family", "strategy", "source", "source_revision", "source_files",
                            "producer", "licence", "unicode_version", "spec", "quantization",
                            "stop_ids", "sampling", "markers", "special_tokens"});
  Manifest manifest{.family = json.at("family").string(),
                    .strategy = json.at("strategy").string(),
                    .source = json.at("source").string(),
                    .source_revision = json.at("source_revision").string(),
                    .producer = json.at("producer").string(),
                    .licence = json.at("licence").string(),
                    .source_files = {},
                    .unicode_version = json.at("unicode_version").string(),
                    .spec = read_spec(json.at("spec")),
                    .quantization = json.at("quantization").string(),
                    .stop_ids = {},
                    .default_sampling = read_sampling(json.at("sampling")),
                    .markers = read_markers(json.at("markers")),
                    .special_tokens = {}};
  for (const JsonCursor& file : json.at("source_files").elements()) {
    manifest.source_files.push_back(read_file_hash(file));
  }
  for (const JsonCursor& id : json.at("stop_ids").elements()) {
    manifest.stop_ids.push_back(static_cast<TokenId>(id.integer_in(0, kMaxInt)));
  }
  if (const auto tokens = json.find("special_tokens")) {
    for (const auto& [name, token] : tokens->members()) {
      manifest.special_tokens.emplace(name, token.string());
    }
  }
  return manifest;
}

template <typename List, typename ElementToJson>
Json array_of(const List& list, ElementToJson element_to_json) {
  Json::Array array;
  for (const auto& element : list) array.push_back(element_to_json(element));
  return array;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, what);
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void validate_names(const Manifest& manifest) {
  const std::pair<std::string_view, const std::string&> required[] = {
      {"family", manifest.family},
      {"strategy", manifest.strategy},
      {"source", manifest.source},
      {"producer", manifest.producer}};
  for (const auto& [key, value] : required) {
    if (value.empty()) refuse(fmt::format("{}: empty, expected a name", key));
  }
  for (const FileHash& file : manifest.source_files) {
    if (file.name.empty()) refuse("source_files: a file without a name");
    if (!is_sha256(file.sha256)) {
      refuse(fmt::format("source_files: \"{}\": sha256 is \"{}\", expected 64 hexadecimal digits",
                         file.name, file.sha256));
    }
  }
}

}  // namespace

void validate(const Manifest& manifest) {
  validate_names(manifest);
  with_context("spec", [&] { validate(manifest.spec); });
  with_context("sampling", [&] { validate(manifest.default_sampling); });
  if (manifest.default_sampling.seed != 0 || !manifest.default_sampling.logit_bias.empty()) {
    refuse("sampling: a seed or a bias, which belong to a request and not to a bundle");
  }
  if (!is_quant_scheme(manifest.quantization)) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("quantization: \"{}\", this version of trtmc reads \"{}\"",
                            manifest.quantization, fmt::join(quant_schemes(), "\", \"")),
                "use a newer trtmc, or build the bundle again with this one");
  }
  int64_t previous = -1;
  for (const TokenId id : manifest.stop_ids) {
    if (id <= previous || id >= manifest.spec.vocab_size) {
      refuse(fmt::format("stop_ids: {}, expected rising ids below vocab_size {}", id,
                         manifest.spec.vocab_size));
    }
    previous = id;
  }
  const OutputMarkers& markers = manifest.markers;
  if (markers.think_open.empty() != markers.think_close.empty() ||
      markers.tool_open.empty() != markers.tool_close.empty()) {
    refuse("markers: one of a pair is empty, expected both or neither");
  }
}

Json to_json(const DecoderSpec& spec) {
  Json rope;
  rope.set("theta", spec.rope.theta);
  rope.set("rotary_dim", spec.rope.rotary_dim);
  rope.set("scaling", scaling_to_json(spec.rope));
  Json json;
  json.set("vocab_size", spec.vocab_size);
  json.set("hidden_size", spec.hidden_size);
  json.set("intermediate_size", spec.intermediate_size);
  json.set("num_heads", spec.num_heads);
  json.set("num_kv_heads", spec.num_kv_heads);
  json.set("head_dim", spec.head_dim);
  json.set("context_length", spec.context_length);
  json.set("rms_norm_eps", shortest_double(spec.rms_norm_eps));
  json.set("tied_embeddings", spec.tied_embeddings);
  json.set("rope", std::move(rope));
  json.set("layers", array_of(spec.layers, [](const LayerSpec& layer) {
             Json item;
             item.set("rope", layer.rope);
             item.set("sliding_window", layer.sliding_window);
             return item;
           }));
  return json;
}

Json to_json(const Manifest& manifest) {
  Json json;
  json.set("family", manifest.family);
  json.set("strategy", manifest.strategy);
  json.set("source", manifest.source);
  json.set("source_revision", manifest.source_revision);
  json.set("source_files",
           array_of(manifest.source_files, [](const FileHash& file) { return to_json(file); }));
  json.set("producer", manifest.producer);
  json.set("licence", manifest.licence);
  json.set("unicode_version", manifest.unicode_version);
  json.set("spec", to_json(manifest.spec));
  json.set("quantization", manifest.quantization);
  json.set("stop_ids", array_of(manifest.stop_ids, [](TokenId id) { return Json(id); }));
  json.set("sampling", to_json(manifest.default_sampling));
  json.set("markers", to_json(manifest.markers));
  // Left out by the versions that came before this key; without tokens a bundle is as theirs.
  if (manifest.special_tokens.empty()) return json;
  Json tokens;
  for (const auto& [name, token] : manifest.special_tokens) tokens.set(name, token);
  json.set("special_tokens", std::move(tokens));
  return json;
}

Manifest manifest_from_json(const Json& json) {
  try {
    Manifest manifest = read_manifest(JsonCursor(json));
    validate(manifest);
    return manifest;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnsupported) throw;
    throw Error(ErrorCode::kCorrupt, error.what(), error.hint());
  }
}

}  // namespace trtmc
