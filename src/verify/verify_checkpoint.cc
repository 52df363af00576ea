#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "checkpoint/open_checkpoint.h"
#include "families/model_family.h"
#include "tensor/packed_layout.h"
#include "tensor/quantize.h"
#include "verify/verify.h"

namespace trtmc {
namespace {

// A tensor of the checkpoint, as a bundle stores it: the rows of its sources as one tensor.
class StackedTensor {
 public:
  StackedTensor(const Checkpoint& checkpoint, const TensorRule& rule) {
    for (const std::string& name : rule.sources) {
      std::optional<CheckpointTensor> source = checkpoint.tensor(name);
      if (!source || source->shape.empty()) {
        throw Error(ErrorCode::kNotFound, fmt::format("the checkpoint has no tensor \"{}\"", name));
      }
      sources_.push_back(*std::move(source));
    }
  }

  // Whether these are `rows` rows of `width` values.
  bool has_shape(int64_t rows, int64_t width) const {
    for (const CheckpointTensor& source : sources_) {
      if (source.shape.back() != width || source.shape.size() > 2) return false;
      rows -= num_rows(source);
    }
    return rows == 0;
  }

  // out: one row, which never crosses two sources.
  void read(int64_t row, std::span<float> out) {
    for (const CheckpointTensor& source : sources_) {
      if (row < num_rows(source)) {
        const int64_t last = source.shape.size() == 1 ? source.shape[0] : row + 1;
        const Shape shape{static_cast<int64_t>(out.size())};
        return read_floats({source.dtype, shape, source.rows(row, last, buffer_)}, 0, out);
      }
      row -= num_rows(source);
    }
  }

 private:
  // A vector is one row.
  static int64_t num_rows(const CheckpointTensor& source) {
    return source.shape.size() == 1 ? 1 : source.shape[0];
  }

  std::vector<CheckpointTensor> sources_;  // One below the other.
  std::vector<std::byte> buffer_;
};

// Whether quantising the checkpoint's rows again gives the same bytes, which it does on every
// machine.
bool same_panels(const WeightView& weight, StackedTensor& stacked) {
  const PackedLayout layout = weight.packed();
  const auto width = static_cast<size_t>(layout.cols);
  std::vector<float> values(static_cast<size_t>(PackedLayout::kPanelRows) * width);
  std::vector<std::byte> panel(layout.panel_bytes());
  for (int64_t first = 0, at = 0; first < layout.rows; first += PackedLayout::kPanelRows, ++at) {
    std::vector<std::span<const float>> rows;
    for (int64_t row = first; row < std::min(first + PackedLayout::kPanelRows, layout.rows);
         ++row) {
      const auto out = std::span(values).subspan(rows.size() * width, width);
      stacked.read(row, out);
      if (!is_quantizable(out)) return false;
      rows.emplace_back(out);
    }
    quantize_panel(layout, rows, panel);
    const std::byte* ours = weight.bytes.data() + static_cast<size_t>(at) * panel.size();
    if (std::memcmp(ours, panel.data(), panel.size()) != 0) return false;
  }
  return true;
}

// Bit for bit: a zero's sign counts.
bool same_values(const WeightView& weight, StackedTensor& stacked) {
  const auto width = static_cast<size_t>(weight.shape.back());
  const int64_t rows = num_elements(weight.shape) / weight.shape.back();
  if (!stacked.has_shape(rows, weight.shape.back())) return false;
  if (is_quantized(weight.dtype)) return same_panels(weight, stacked);
  std::vector<float> ours(width), theirs(width);
  for (int64_t row = 0; row < rows; ++row) {
    read_row(weight, row, ours);
    stacked.read(row, theirs);
    if (std::memcmp(ours.data(), theirs.data(), width * sizeof(float)) != 0) return false;
  }
  return true;
}

Check check_files(const Manifest& manifest, const Checkpoint& checkpoint) {
  int different = 0;
  std::string first;
  for (const FileHash& file : manifest.source_files) {
    const MappedFile mapped(checkpoint.path() / file.name);
    if (mapped.bytes().size() == file.bytes && to_hex(sha256(mapped.bytes())) == file.sha256) {
      continue;
    }
    if (++different == 1) first = fmt::format("first {}", file.name);
  }
  if (different == 0) first = fmt::format("of {}", manifest.source_files.size());
  return {"checkpoint files with another hash than recorded", static_cast<double>(different), 0,
          true, first};
}

}  // namespace

VerifyReport verify_checkpoint(const Bundle& bundle, const std::filesystem::path& checkpoint) {
  const std::shared_ptr<const Checkpoint> source = open_checkpoint(checkpoint);
  const ModelFamily& family = find_family(source->config(), bundle.manifest().family);
  const std::vector<TensorRule> rules = family.tensor_rules(bundle.spec());
  int different = 0;
  std::string first;
  for (const TensorRule& rule : rules) {
    StackedTensor stacked(*source, rule);
    if (same_values(bundle.weight(rule.key), stacked)) continue;
    if (++different == 1) first = fmt::format("first \"{}\"", to_string(rule.key));
  }
  if (different == 0) first = fmt::format("of {}", rules.size());
  return {{{"tensors with other values than the checkpoint's", static_cast<double>(different), 0,
            true, first},
           check_files(bundle.manifest(), *source)}};
}

}  // namespace trtmc
