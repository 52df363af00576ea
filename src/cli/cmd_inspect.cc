#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/backend_table.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/route_report.h"

namespace trtmc {
namespace {

uint64_t count_parameters(const DecoderSpec& spec) {
  uint64_t parameters = 0;
  for (const TensorKey& key : tensor_keys(spec)) {
    parameters += static_cast<uint64_t>(num_elements(tensor_shape(spec, key)));
  }
  return parameters;
}

std::string_view kind_name(SectionKind kind) {
  switch (kind) {
    case SectionKind::kTensor:
      return "tensor";
    case SectionKind::kTokenizer:
      return "tokenizer";
    case SectionKind::kText:
      return "text";
  }
  return "unknown";
}

std::string_view layout_name(TensorLayout layout) {
  return layout == TensorLayout::kPlain ? "plain" : "panels16";
}

// One letter a layer: R rotates, N does not.
std::string rope_pattern(const DecoderSpec& spec) {
  std::string pattern;
  for (const LayerSpec& layer : spec.layers) pattern += layer.rope ? 'R' : 'N';
  return pattern;
}

std::string rope_scaling(const RopeSpec& rope) {
  if (const auto* yarn = std::get_if<YarnScaling>(&rope.scaling)) {
    return fmt::format(", YaRN by {} from {}", yarn->factor, yarn->original_context);
  }
  if (const auto* llama = std::get_if<Llama3Scaling>(&rope.scaling)) {
    return fmt::format(", Llama 3 scaling by {} from {}", llama->factor, llama->original_context);
  }
  return "";
}

Json sections_json(const Bundle& bundle) {
  Json::Array sections;
  for (const Section& section : bundle.sections()) {
    Json json;
    json.set("name", section.name);
    json.set("kind", kind_name(section.kind));
    if (section.kind == SectionKind::kTensor) {
      json.set("dtype", dtype_name(section.dtype));
      json.set("layout", layout_name(section.layout));
      json.set("shape", Json::Array(section.shape.begin(), section.shape.end()));
    }
    json.set("offset", section.offset);
    json.set("bytes", section.bytes);
    json.set("sha256", to_hex(section.sha256));
    sections.push_back(std::move(json));
  }
  return sections;
}

Json layers_json(const DecoderSpec& spec) {
  Json::Array layers;
  for (const LayerSpec& layer : spec.layers) {
    Json json;
    json.set("rope", layer.rope);
    json.set("sliding_window", layer.sliding_window);
    layers.push_back(std::move(json));
  }
  return layers;
}

Json inspect_json(const Bundle& bundle, const RouteDecision& routes) {
  const Manifest& manifest = bundle.manifest();
  Json json;
  json.set("family", manifest.family);
  json.set("strategy", manifest.strategy);
  json.set("source", manifest.source);
  json.set("source_revision", manifest.source_revision);
  json.set("producer", manifest.producer);
  json.set("licence", manifest.licence);
  json.set("identity", to_hex(bundle.identity()));
  json.set("bytes", bundle.file_bytes());
  json.set("parameters", count_parameters(bundle.spec()));
  json.set("spec", to_json(bundle.spec()));
  json.set("layers", layers_json(bundle.spec()));
  json.set("stop_ids", Json::Array(manifest.stop_ids.begin(), manifest.stop_ids.end()));
  json.set("quantization", manifest.quantization);
  json.set("chat_template", bundle.chat_template().has_value());
  json.set("sections", sections_json(bundle));
  json.set("routes", to_json(routes));
  json.set("backends", to_json(backend_states(&manifest)));
  return json;
}

std::string sections_text(const Bundle& bundle) {
  std::string text;
  for (const Section& section : bundle.sections()) {
    const bool tensor = section.kind == SectionKind::kTensor;
    text += fmt::format("  {:<26} {:>9}  {}\n", section.name, format_bytes(section.bytes),
                        tensor ? fmt::format("{} {} {}", dtype_name(section.dtype),
                                             to_string(section.shape), layout_name(section.layout))
                               : std::string(kind_name(section.kind)));
  }
  return text;
}

std::string inspect_text(const Bundle& bundle, const RouteDecision& routes) {
  const Manifest& manifest = bundle.manifest();
  const DecoderSpec& spec = bundle.spec();
  const std::optional<DecoderRoute> taken = routes.taken();
  const auto line = [](std::string_view name, const std::string& value) {
    return fmt::format("{:<14}{}\n", name, value);
  };
  const std::string revision =
      manifest.source_revision.empty() ? "" : fmt::format("@{}", manifest.source_revision);
  return line("bundle",
              fmt::format("{}, {}", bundle.path().string(), format_bytes(bundle.file_bytes()))) +
         line("identity", to_hex(bundle.identity())) +
         line("family", fmt::format("{} ({})", manifest.family, manifest.strategy)) +
         line("source", manifest.source + revision) +
         line("licence", manifest.licence.empty() ? "unknown" : manifest.licence) +
         line("producer", manifest.producer) +
         line("parameters", format_count(count_parameters(spec))) +
         line("quantisation", manifest.quantization) +
         line("context", fmt::format("{} tokens", spec.context_length)) +
         line("layers", fmt::format("{}: {} (R: rotary positions, N: none)", spec.num_layers(),
                                    rope_pattern(spec))) +
         line("rope", fmt::format("theta {}{}", spec.rope.theta, rope_scaling(spec.rope))) +
         line("width",
              fmt::format("{} hidden, {} in the MLP", spec.hidden_size, spec.intermediate_size)) +
         line("heads", fmt::format("{} for {} of keys and values, {} wide", spec.num_heads,
                                   spec.num_kv_heads, spec.head_dim)) +
         line("vocabulary", fmt::format("{}{}", spec.vocab_size,
                                        spec.tied_embeddings ? ", tied embeddings" : "")) +
         line("stop ids", fmt::format("{}", fmt::join(manifest.stop_ids, ", "))) +
         line("chat template", bundle.chat_template() ? "yes" : "none") +
         line("routes", taken ? fmt::format("{}, through TensorRT", decoder_route_name(*taken))
                              : "none through TensorRT") +
         to_text(routes) + fmt::format("sections      {}\n", bundle.sections().size()) +
         sections_text(bundle);
}

}  // namespace

void execute(const InspectCommand& command, Console& console) {
  console.configure_log(command.log);
  const Bundle bundle(command.bundle);
  if (command.backends) {
    const std::vector<BackendState> states = backend_states(&bundle.manifest());
    if (command.json) return console.print_json(to_json(states));
    return console.print(to_table(states));
  }
  const RouteDecision routes = choose_decoder_route(route_question(bundle, command.routes));
  if (command.json) return console.print_json(inspect_json(bundle, routes));
  console.print(inspect_text(bundle, routes));
}

}  // namespace trtmc
