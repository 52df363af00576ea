#include "backends/cpu/cpu_weights.h"

#include <algorithm>

#include "backends/cpu/kernels/kernel_table.h"
#include "base/log.h"
#include "tensor/tensor_view.h"

namespace trtmc::cpu {
namespace {

// Where the bytes of activations would add most to the divergence of q8 for what it costs to have
// their rest too: these are a twentieth of a prefill's products. docs/quantization.md has figures.
bool multiplies_rest(DType dtype, Role role) {
  return dtype == DType::kQ8 &&
         (role == Role::kOProj || role == Role::kEmbedding || role == Role::kLmHead);
}

}  // namespace

CpuWeights::CpuWeights(const Bundle& bundle)
    : num_layers_(static_cast<size_t>(bundle.spec().num_layers())) {
  constexpr size_t kNumRoles = static_cast<size_t>(Role::kDownProj) + 1;
  matrices_.resize(kNumRoles * (num_layers_ + 1));
  norms_.resize(matrices_.size());
  for (const TensorKey& key : tensor_keys(bundle.spec())) {
    const WeightView weight = bundle.weight(key);
    bytes_ += weight.bytes.size();
    if (is_norm(key.role)) {
      add_norm(key, weight);
    } else {
      add_matrix(key, weight);
    }
  }
}

size_t CpuWeights::index(const TensorKey& key) const {
  return static_cast<size_t>(key.role) * (num_layers_ + 1) + static_cast<size_t>(key.layer + 1);
}

void CpuWeights::add_matrix(const TensorKey& key, const WeightView& weight) {
  CpuMatrix& matrix = matrices_[index(key)];
  matrix = {weight.dtype, weight.shape[0], weight.shape[1], weight.bytes,
            multiplies_rest(weight.dtype, key.role)};
  if (weight.layout == TensorLayout::kPanels16) return;
  copies_.push_back(pack_plain(weight));
  matrix.panels = copies_.back();
  bytes_ += copies_.back().size();
  log_info("{} lies row-major in the bundle: packed into {} bytes of memory", to_string(key),
           copies_.back().size());
}

void CpuWeights::add_norm(const TensorKey& key, const WeightView& weight) {
  const auto width = static_cast<size_t>(weight.shape[0]);
  std::vector<float>& norm = norms_[index(key)];
  norm.resize(static_cast<size_t>(round_up(weight.shape[0], 16)));
  read_floats({weight.dtype, weight.shape, weight.bytes}, 0, std::span(norm).first(width));
}

}  // namespace trtmc::cpu
