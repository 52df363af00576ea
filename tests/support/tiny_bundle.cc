#include "tests/support/tiny_bundle.h"

#include <cstddef>

#include "base/file.h"
#include "bundle/bundle_writer.h"
#include "bundle/quant_scheme.h"

namespace trtmc {
namespace {

Section tensor_section(const DecoderSpec& spec, const TensorKey& key, DType dtype) {
  const bool norm = is_norm(key.role);
  Section section{.name = to_string(key),
                  .kind = SectionKind::kTensor,
                  .dtype = norm ? DType::kF32 : dtype,
                  .layout = norm ? TensorLayout::kPlain : TensorLayout::kPanels16,
                  .shape = tensor_shape(spec, key),
                  .offset = 0,
                  .bytes = 0,
                  .sha256 = {}};
  section.bytes = norm ? static_cast<uint64_t>(num_elements(section.shape)) * 4
                       : PackedLayout{dtype, section.shape[0], section.shape[1]}.total_bytes();
  return section;
}

Section asset_section(std::string_view name, SectionKind kind, uint64_t bytes) {
  return {.name = std::string(name),
          .kind = kind,
          .dtype = {},
          .layout = {},
          .shape = {},
          .offset = 0,
          .bytes = bytes,
          .sha256 = {}};
}

}  // namespace

DecoderSpec tiny_spec(bool tied) {
  return {.vocab_size = 40,
          .hidden_size = 24,
          .intermediate_size = 40,
          .num_heads = 6,
          .num_kv_heads = 2,
          .head_dim = 4,
          .context_length = 128,
          .rms_norm_eps = 1e-6F,
          .tied_embeddings = tied,
          .rope = {10000, 4, {}},
          .layers = {{true, 0}, {false, 16}}};
}

Manifest tiny_manifest(bool tied) {
  Manifest manifest{.family = "smollm3",
                    .strategy = "smollm3_decoder_kv_cache",
                    .source = "tiny",
                    .source_revision = "",
                    .producer = "trtmc 0.1.0",
                    .licence = "apache-2.0",
                    .source_files = {{"config.json", 12, std::string(64, 'a')}},
                    .unicode_version = "16.0.0",
                    .spec = tiny_spec(tied),
                    .quantization = "none",
                    .stop_ids = {3, 39},
                    .default_sampling = {},
                    .markers = {"<think>", "</think>", "", ""},
                    .special_tokens = {}};
  manifest.default_sampling.temperature = 0.6;
  manifest.default_sampling.top_p = 0.95;
  return manifest;
}

std::vector<Section> tiny_sections(const TinyBundleOptions& options) {
  const DecoderSpec spec = tiny_spec(options.tied);
  std::vector<Section> sections;
  for (const TensorKey& key : tensor_keys(spec)) {
    const auto quantized = quantized_type(options.quantization, key.role);
    sections.push_back(tensor_section(spec, key, quantized.value_or(options.dtype)));
  }
  if (!options.tokenizer.empty()) {
    sections.push_back(
        asset_section(kTokenizerSection, SectionKind::kTokenizer, options.tokenizer.size()));
  }
  if (!options.chat_template.empty()) {
    sections.push_back(
        asset_section(kChatTemplateSection, SectionKind::kText, options.chat_template.size()));
  }
  return sections;
}

void write_tiny_bundle(const std::filesystem::path& path, const TinyBundleOptions& options) {
  const std::vector<Section> sections = tiny_sections(options);
  Manifest manifest = tiny_manifest(options.tied);
  manifest.quantization = options.quantization;
  BundleWriter writer(path, manifest, sections, AtomicFile::IfExists::kReplace);
  for (size_t i = 0; i < sections.size(); ++i) {
    std::vector<std::byte> bytes(sections[i].bytes);
    for (size_t j = 0; j < bytes.size(); ++j) bytes[j] = static_cast<std::byte>(7 * i + 1 + j);
    if (sections[i].name == kTokenizerSection) {
      writer.append(i, as_bytes(options.tokenizer));
    } else if (sections[i].name == kChatTemplateSection) {
      writer.append(i, as_bytes(options.chat_template));
    } else {
      writer.append(i, bytes);
    }
  }
  writer.commit();
}

}  // namespace trtmc
