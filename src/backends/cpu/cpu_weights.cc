#include "backends/cpu/cpu_weights.h"

#include <algorithm>

#include "backends/cpu/kernels/kernel_table.h"
#include "base/log.h"
#include "tensor/tensor_view.h"

namespace trtmc::cpu {
namespace {

std::vector<std::byte> pack_matrix(const WeightView& weight) {
  const PackedLayout layout = weight.packed();
  const TensorView plain{weight.dtype, weight.shape, weight.bytes};
  std::vector<std::byte> packed(layout.total_bytes());
  std::vector<float> values(static_cast<size_t>(PackedLayout::kPanelRows * layout.cols));
  for (int64_t panel = 0; panel < layout.num_panels(); ++panel) {
    const int64_t first = panel * PackedLayout::kPanelRows;
    const int64_t count = std::min(PackedLayout::kPanelRows, layout.rows - first);
    std::vector<std::span<const float>> rows;
    for (int64_t r = 0; r < count; ++r) {
      const auto row = std::span(values).subspan(static_cast<size_t>(r * layout.cols),
                                                 static_cast<size_t>(layout.cols));
      read_floats(plain, (first + r) * layout.cols, row);
      rows.emplace_back(row);
    }
    pack_panel(layout, rows,
               std::span(packed).subspan(static_cast<size_t>(panel) * layout.panel_bytes(),
                                         layout.panel_bytes()));
  }
  return packed;
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
  matrix = {weight.dtype, weight.shape[0], weight.shape[1], weight.bytes};
  if (weight.layout == TensorLayout::kPanels16) return;
  copies_.push_back(pack_matrix(weight));
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
