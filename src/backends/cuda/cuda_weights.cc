#include "backends/cuda/cuda_weights.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "backends/cuda/kernels/product.h"
#include "backends/cuda/kernels/weights.h"
#include "tensor/packed_layout.h"

namespace trtmc::cuda {
namespace {

constexpr std::string_view kDoing = "copying weights to the GPU";

int num_panels(const WeightView& weight) {
  return static_cast<int>((weight.shape[0] + kPanelRows - 1) / kPanelRows);
}

// Of types that the tensor cores multiply.
std::optional<WeightFormat> format_of(DType dtype) {
  if (dtype == DType::kBF16) return WeightFormat::kBf16;
  if (dtype == DType::kQ8) return WeightFormat::kQ8;
  if (dtype == DType::kQ4) return WeightFormat::kQ4;
  return std::nullopt;
}

// Whether these are of one type, so that they can lie together.
bool are_alike(const Bundle& bundle, int layer, std::initializer_list<Role> roles) {
  const DType first = bundle.weight({*roles.begin(), layer}).dtype;
  return std::ranges::all_of(roles, [&](Role role) {
    return bundle.weight({role, layer}).dtype == first;
  });
}

// In whole groups.
int num_grouped_panels(const WeightView& weight) {
  return (num_panels(weight) + kGroupPanels - 1) / kGroupPanels * kGroupPanels;
}

// The panels of a matrix: where they lie, or in `copy` what is made of a row-major one.
std::span<const std::byte> panels_of(const WeightView& weight, std::vector<std::byte>& copy) {
  if (weight.layout == TensorLayout::kPanels16) return weight.bytes;
  copy = pack_plain(weight);
  return copy;
}

void copy_to_device(void* to, const void* from, size_t bytes) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), kDoing);
}

}  // namespace

CudaWeights::CudaWeights(const Bundle& bundle)
    : num_layers_(static_cast<size_t>(bundle.spec().num_layers())) {
  const DecoderSpec& spec = bundle.spec();
  constexpr size_t kNumRoles = static_cast<size_t>(Role::kDownProj) + 1;
  matrices_.resize(kNumRoles * (num_layers_ + 1));
  norms_.resize(matrices_.size());
  size_t largest = 0;
  for (const TensorKey& key : tensor_keys(spec)) {
    const WeightView weight = bundle.weight(key);
    if (is_norm(key.role)) {
      add_norm(key, weight);
      continue;
    }
    all_fragments_ = all_fragments_ && format_of(weight.dtype).has_value();
    largest = std::max(largest, weight.packed().total_bytes());
  }
  for (int layer = 0; layer < spec.num_layers(); ++layer) {
    all_fragments_ = all_fragments_ &&
                     are_alike(bundle, layer, {Role::kQProj, Role::kKProj, Role::kVProj}) &&
                     are_alike(bundle, layer, {Role::kGateProj, Role::kUpProj});
  }
  if (!all_fragments_) {
    for (const TensorKey& key : tensor_keys(spec)) {
      if (!is_norm(key.role)) add_floats(key, bundle.weight(key));
    }
    return;
  }
  staging_ = DeviceBuffer<std::byte>(largest, kDoing);
  add_alone(bundle, {Role::kEmbedding});
  for (int layer = 0; layer < spec.num_layers(); ++layer) add_layer(bundle, layer);
  if (!spec.tied_embeddings) add_alone(bundle, {Role::kLmHead});
  staging_ = {};
}

size_t CudaWeights::index(const TensorKey& key) const {
  return static_cast<size_t>(key.role) * (num_layers_ + 1) + static_cast<size_t>(key.layer + 1);
}

void CudaWeights::add_norm(const TensorKey& key, const WeightView& weight) {
  std::vector<float> values(static_cast<size_t>(weight.shape[0]));
  read_floats({weight.dtype, weight.shape, weight.bytes}, 0, values);
  DeviceBuffer<float> norm(values.size(), kDoing);
  copy_to_device(norm.data(), values.data(), norm.bytes());
  bytes_ += norm.bytes();
  norms_[index(key)] = std::move(norm);
}

void CudaWeights::add_floats(const TensorKey& key, const WeightView& weight) {
  const PackedLayout layout{DType::kF32, weight.shape[0], weight.shape[1]};
  std::vector<std::byte> copy;
  std::vector<float> row(static_cast<size_t>(layout.cols));
  std::vector<float> values(layout.total_bytes() / sizeof(float));
  const auto panels = panels_of(weight, copy);
  for (int64_t r = 0; r < layout.rows; ++r) {
    unpack_row(weight.packed(), panels, r, row);
    for (int64_t k = 0; k < layout.cols; ++k) {
      values[static_cast<size_t>(layout.index(r, k))] = row[static_cast<size_t>(k)];
    }
  }
  memory_.emplace_back(layout.total_bytes(), kDoing);
  copy_to_device(memory_.back().data(), values.data(), layout.total_bytes());
  bytes_ += layout.total_bytes();
  matrices_[index(key)] = {.rows = static_cast<int>(layout.rows),
                           .cols = static_cast<int>(layout.cols),
                           .format = WeightFormat::kBf16,
                           .fragments = nullptr,
                           .panels = reinterpret_cast<const float*>(memory_.back().data()),
                           .num_panels = static_cast<int>(layout.num_panels()),
                           .steps = 0};
}

CudaMatrix CudaWeights::make_fragments(WeightFormat format, int num_panels, int rows, int cols) {
  const int steps = num_steps(cols);
  const auto bytes = static_cast<size_t>(group_offset(format, num_panels, steps));
  memory_.emplace_back(bytes, kDoing, true);
  bytes_ += bytes;
  return {.rows = rows,
          .cols = cols,
          .format = format,
          .fragments = memory_.back().data(),
          .panels = nullptr,
          .num_panels = num_panels,
          .steps = steps};
}

void CudaWeights::pack(const WeightView& weight, const CudaMatrix& into, int first_row,
                       int row_distance) {
  std::vector<std::byte> copy;
  const auto panels = panels_of(weight, copy);
  copy_to_device(staging_.data(), panels.data(), panels.size());
  auto* to = const_cast<std::byte*>(into.fragments);
  if (into.format == WeightFormat::kBf16) {
    launch_pack_fragments({.from = reinterpret_cast<const uint32_t*>(staging_.data()),
                           .to = reinterpret_cast<uint32_t*>(to),
                           .num_panels = num_panels(weight),
                           .pairs = static_cast<int>(weight.packed().padded_cols() / 2),
                           .steps = into.steps,
                           .first_row = first_row,
                           .row_distance = row_distance},
                          {});
  } else {
    launch_pack_quantized({.format = into.format,
                           .from = staging_.data(),
                           .to = to,
                           .num_panels = num_panels(weight),
                           .groups = static_cast<int>(weight.packed().num_groups()),
                           .steps = into.steps,
                           .first_row = first_row,
                           .row_distance = row_distance},
                          {});
  }
  check_cuda(cudaGetLastError(), kDoing);
  check_cuda(cudaDeviceSynchronize(), kDoing);
}

void CudaWeights::add_alone(const Bundle& bundle, const TensorKey& key) {
  const WeightView weight = bundle.weight(key);
  CudaMatrix& matrix = matrices_[index(key)];
  matrix = make_fragments(*format_of(weight.dtype), num_grouped_panels(weight),
                          static_cast<int>(weight.shape[0]), static_cast<int>(weight.shape[1]));
  pack(weight, matrix, 0, 1);
}

void CudaWeights::add_layer(const Bundle& bundle, int layer) {
  const DecoderSpec& spec = bundle.spec();
  const auto weight = [&](Role role) { return bundle.weight({role, layer}); };
  const auto add_behind = [&](Role role, const CudaMatrix& of, int first_row) {
    const WeightView view = weight(role);
    pack(view, of, first_row, 1);
    CudaMatrix& matrix = matrices_[index({role, layer})];
    matrix = of;
    matrix.fragments += group_offset(of.format, first_row / kPanelRows, of.steps);
    matrix.num_panels = num_grouped_panels(view);
    matrix.rows = static_cast<int>(view.shape[0]);
  };
  const auto add_alternating = [&](Role role, const CudaMatrix& of, int first_row) {
    pack(weight(role), of, first_row, 2);
    CudaMatrix& matrix = matrices_[index({role, layer})];
    matrix = of;
    matrix.row_distance = 2;
    matrix.first_row = first_row;
    matrix.rows = static_cast<int>(weight(role).shape[0]);
  };
  const int q_panels = num_grouped_panels(weight(Role::kQProj));
  const int kv_panels = num_grouped_panels(weight(Role::kKProj));
  first_k_row_ = q_panels * kPanelRows;
  first_v_row_ = first_k_row_ + kv_panels * kPanelRows;
  const int panels = q_panels + 2 * kv_panels;
  qkv_.push_back(make_fragments(*format_of(weight(Role::kQProj).dtype), panels, panels * kPanelRows,
                                spec.hidden_size));
  add_behind(Role::kQProj, qkv_.back(), 0);
  add_behind(Role::kKProj, qkv_.back(), first_k_row_);
  add_behind(Role::kVProj, qkv_.back(), first_v_row_);
  add_alone(bundle, {Role::kOProj, layer});
  const int mlp_panels = num_grouped_panels(weight(Role::kGateProj));
  gate_up_.push_back(make_fragments(*format_of(weight(Role::kGateProj).dtype), 2 * mlp_panels,
                                    2 * mlp_panels * kPanelRows, spec.hidden_size));
  add_alternating(Role::kGateProj, gate_up_.back(), 0);
  add_alternating(Role::kUpProj, gate_up_.back(), 1);
  add_alone(bundle, {Role::kDownProj, layer});
}

}  // namespace trtmc::cuda
