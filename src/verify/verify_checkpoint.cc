#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "checkpoint/hf_directory.h"
#include "families/model_family.h"
#include "tensor/packed_layout.h"
#include "verify/verify.h"

namespace trtmc {
namespace {

// A tensor of the checkpoint, as a bundle stores it: the rows of its sources as one tensor.
struct StackedTensor {
  std::vector<TensorView> sources;  // One below the other.

  static StackedTensor find(const Checkpoint& checkpoint, const TensorRule& rule) {
    StackedTensor out;
    for (const std::string& name : rule.sources) {
      const std::optional<TensorView> source = checkpoint.tensor(name);
      if (!source) {
        throw Error(ErrorCode::kNotFound, fmt::format("the checkpoint has no tensor \"{}\"", name));
      }
      out.sources.push_back(*source);
    }
    return out;
  }

  int64_t elements() const {
    int64_t sum = 0;
    for (const TensorView& source : sources) sum += num_elements(source.shape);
    return sum;
  }

  // out: one row. A row never crosses two sources.
  void read(int64_t element, std::span<float> out) const {
    for (const TensorView& source : sources) {
      if (element < num_elements(source.shape)) return read_floats(source, element, out);
      element -= num_elements(source.shape);
    }
  }
};

void read_row(const WeightView& weight, int64_t row, std::span<float> out) {
  if (weight.layout == TensorLayout::kPanels16) {
    unpack_row(weight.packed(), weight.bytes, row, out);
  } else {
    const auto width = static_cast<int64_t>(out.size());
    read_floats({weight.dtype, weight.shape, weight.bytes}, row * width, out);
  }
}

// Bit for bit: a zero's sign counts.
bool same_values(const WeightView& weight, const StackedTensor& stacked) {
  if (num_elements(weight.shape) != stacked.elements()) return false;
  const auto width = static_cast<size_t>(weight.shape.back());
  std::vector<float> ours(width), theirs(width);
  const int64_t rows = num_elements(weight.shape) / weight.shape.back();
  for (int64_t row = 0; row < rows; ++row) {
    read_row(weight, row, ours);
    stacked.read(row * static_cast<int64_t>(width), theirs);
    if (std::memcmp(ours.data(), theirs.data(), width * sizeof(float)) != 0) return false;
  }
  return true;
}

Check check_files(const Manifest& manifest, const std::filesystem::path& checkpoint) {
  int different = 0;
  std::string first;
  for (const FileHash& file : manifest.source_files) {
    const MappedFile mapped(checkpoint / file.name);
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
  const std::shared_ptr<const Checkpoint> source = open_hf_directory(checkpoint);
  const ModelFamily& family = find_family(source->config(), bundle.manifest().family);
  const std::vector<TensorRule> rules = family.tensor_rules(bundle.spec());
  int different = 0;
  std::string first;
  for (const TensorRule& rule : rules) {
    const StackedTensor stacked = StackedTensor::find(*source, rule);
    if (same_values(bundle.weight(rule.key), stacked)) continue;
    if (++different == 1) first = fmt::format("first \"{}\"", to_string(rule.key));
  }
  if (different == 0) first = fmt::format("of {}", rules.size());
  return {{{"tensors with other values than the checkpoint's", static_cast<double>(different), 0,
            true, first},
           check_files(bundle.manifest(), checkpoint)}};
}

}  // namespace trtmc
