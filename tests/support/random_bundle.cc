#include "tests/support/random_bundle.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "bundle/bundle_writer.h"
#include "bundle/quant_scheme.h"
#include "tensor/quantize.h"

namespace trtmc {
namespace {

// Splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // Uniform in [-1, 1).
  float next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return static_cast<float>(static_cast<int64_t>(z ^ (z >> 31)) >> 40) * 0x1p-23F;
  }

 private:
  uint64_t state_;
};

std::string quantization_of(std::string_view weights) {
  return parse_dtype(weights) ? "none" : std::string(weights);
}

DType dtype_of(std::string_view weights, Role role) {
  const std::optional<DType> dtype = parse_dtype(weights);
  return dtype ? *dtype : quantized_type(weights, role).value_or(DType::kF32);
}

Section section_of(const DecoderSpec& spec, const TensorKey& key, std::string_view weights) {
  const DType dtype = dtype_of(weights, key.role);
  const bool norm = is_norm(key.role);
  const Shape shape = tensor_shape(spec, key);
  const uint64_t bytes = norm ? static_cast<uint64_t>(shape[0]) * sizeof(float)
                              : PackedLayout{dtype, shape[0], shape[1]}.total_bytes();
  return {.name = to_string(key),
          .kind = SectionKind::kTensor,
          .dtype = norm ? DType::kF32 : dtype,
          .layout = norm ? TensorLayout::kPlain : TensorLayout::kPanels16,
          .shape = shape,
          .offset = 0,
          .bytes = bytes,
          .sha256 = {}};
}

void append_norm(BundleWriter& writer, size_t index, const Section& section, Random& random) {
  std::vector<float> values(static_cast<size_t>(section.shape[0]));
  for (float& value : values) value = 1 + 0.3F * random.next();
  writer.append(index, std::as_bytes(std::span(values)));
}

// Panels are packed by all threads, some at a time: searching the codes of q4 takes long.
void append_matrix(BundleWriter& writer, size_t index, const Section& section, float size,
                   Random& random, ThreadPool& pool) {
  constexpr int64_t kRows = PackedLayout::kPanelRows;
  constexpr int64_t kPanelsAtOnce = 64;
  const PackedLayout layout{section.dtype, section.shape[0], section.shape[1]};
  const auto cols = static_cast<size_t>(layout.cols);
  std::vector<float> values(static_cast<size_t>(kPanelsAtOnce * kRows) * cols);
  std::vector<std::byte> panels(static_cast<size_t>(kPanelsAtOnce) * layout.panel_bytes());
  for (int64_t first = 0; first < layout.rows; first += kPanelsAtOnce * kRows) {
    const int64_t num_rows = std::min(kPanelsAtOnce * kRows, layout.rows - first);
    const int64_t num_panels = (num_rows + kRows - 1) / kRows;
    for (float& value : std::span(values).first(static_cast<size_t>(num_rows) * cols)) {
      value = size * random.next();
    }
    pool.share(num_panels, [&](int64_t panel, int) {
      std::vector<std::span<const float>> rows;
      for (int64_t r = panel * kRows; r < std::min((panel + 1) * kRows, num_rows); ++r) {
        rows.emplace_back(std::span(values).subspan(static_cast<size_t>(r) * cols, cols));
      }
      const auto out = std::span(panels).subspan(static_cast<size_t>(panel) * layout.panel_bytes(),
                                                 layout.panel_bytes());
      if (is_quantized(layout.dtype)) {
        quantize_panel(layout, rows, out);
      } else {
        pack_panel(layout, rows, out);
      }
    });
    writer.append(index,
                  std::span(panels).first(static_cast<size_t>(num_panels) * layout.panel_bytes()));
  }
}

Manifest manifest_of(const DecoderSpec& spec, std::string_view weights) {
  Manifest manifest;
  manifest.family = "smollm3";
  manifest.strategy = "smollm3_decoder_kv_cache";
  manifest.source = "random";
  manifest.producer = "trtmc tests";
  manifest.unicode_version = "16.0.0";
  manifest.spec = spec;
  manifest.quantization = quantization_of(weights);
  manifest.stop_ids = {0};
  return manifest;
}

}  // namespace

void write_random_bundle(const std::filesystem::path& path, const DecoderSpec& spec,
                         std::string_view weights, uint64_t seed) {
  std::vector<Section> sections;
  for (const TensorKey& key : tensor_keys(spec)) sections.push_back(section_of(spec, key, weights));
  BundleWriter writer(path, manifest_of(spec, weights), sections, AtomicFile::IfExists::kReplace);
  Random random(seed);
  ThreadPool pool(quantization_of(weights) == "none" ? 1 : ThreadPool::default_num_threads());
  for (size_t i = 0; i < sections.size(); ++i) {
    const TensorKey key = *parse_tensor_key(sections[i].name);
    if (is_norm(key.role)) {
      append_norm(writer, i, sections[i], random);
      continue;
    }
    // A sum over n inputs of variance 1 has variance 1 if the weights' is 1 / n.
    const auto inputs = static_cast<float>(sections[i].shape[1]);
    const float size = key.role == Role::kEmbedding ? 1.0F : std::sqrt(3.0F / inputs);
    append_matrix(writer, i, sections[i], size, random, pool);
  }
  writer.commit();
}

}  // namespace trtmc
