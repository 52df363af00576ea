// A bundle's manifest, past every hash: refused, or a manifest that survives being written, whose
// decoder can be computed with, and that a whole file with its sections opens with.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/step_limits.h"
#include "base/check.h"
#include "base/error.h"
#include "bundle/bundle_header.h"
#include "model/rope_table.h"

namespace {

using trtmc::DecoderSpec;
using trtmc::Manifest;
using trtmc::Section;

constexpr int kMaxManifestDepth = 8;  // As decode_header() reads it.
constexpr uint64_t kMostFileBytes = 1 << 20;

// The sections of such a decoder; nothing of them is written.
std::vector<Section> sections_of(const DecoderSpec& spec) {
  std::vector<Section> sections;
  for (const trtmc::TensorKey& key : tensor_keys(spec)) {
    const bool norm = is_norm(key.role);
    Section section{.name = to_string(key),
                    .kind = trtmc::SectionKind::kTensor,
                    .dtype = norm ? trtmc::DType::kF32 : trtmc::DType::kBF16,
                    .layout = norm ? trtmc::TensorLayout::kPlain : trtmc::TensorLayout::kPanels16,
                    .shape = tensor_shape(spec, key),
                    .offset = 0,
                    .bytes = 0,
                    .sha256 = {}};
    section.bytes = tensor_section_bytes(section);
    sections.push_back(section);
  }
  return sections;
}

void check_rope(const DecoderSpec& spec) {
  const trtmc::RopeTable table = make_rope_table(spec.rope);
  std::vector<float> cos(table.inverse_frequencies.size()), sin(cos.size());
  for (const int position : {0, 1, spec.context_length - 1}) {
    rope_cos_sin(table, position, cos, sin);
    for (const float value : cos) TRTMC_CHECK(!std::isnan(value), "an angle that is no number");
  }
}

void check_limits(const DecoderSpec& spec) {
  try {
    const auto block_bytes = trtmc::kv_block_bytes(spec, trtmc::KvType::kBF16, 32);
    const trtmc::Limits limits = make_limits(spec, {}, 32, block_bytes);
    TRTMC_CHECK(limits.num_blocks > 0, "an executor without a block");
  } catch (const trtmc::Error&) {
    // More memory than there is.
  }
}

// A whole file with this manifest's text and sections of zeros, opened.
void check_file(const Manifest& manifest, std::string_view json) {
  std::vector<std::byte> file;
  try {
    std::vector<Section> sections = sections_of(manifest.spec);
    const uint64_t file_bytes = place_sections(json.size(), sections);
    if (file_bytes > kMostFileBytes) return;
    file = encode_header(json, sections, file_bytes);
    file.resize(file_bytes);
  } catch (const trtmc::Error&) {
    return;  // A decoder beyond the format's limits.
  }
  const trtmc::BundleHeader header = trtmc::decode_header(file);
  TRTMC_CHECK(header.manifest == manifest, "another manifest in the file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  Manifest manifest;
  try {
    manifest = trtmc::manifest_from_json(
        trtmc::Json::parse(json, kMaxManifestDepth, trtmc::Json::EqualKeys::kRefuse));
  } catch (const trtmc::Error&) {
    return 0;  // The one way to refuse.
  }
  // From here on nothing is refused: an Error ends the target as a crash does.
  validate(manifest);
  TRTMC_CHECK(manifest_from_json(trtmc::Json::parse(to_json(manifest).dump())) == manifest,
              "a manifest that does not survive being written");
  check_rope(manifest.spec);
  check_limits(manifest.spec);
  check_file(manifest, json);
  return 0;
}
