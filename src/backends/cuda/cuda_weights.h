// A bundle's weights on the device, as the kernels want them: bf16, q8 and q4 as fragments, of
// which matrices that are multiplied with the same tokens lie together: q, k and v one behind the
// other, gate and up row by row in turn. Matrices of f32 and f16 are kept as float32 panels, one by
// one.
#pragma once

#include <vector>

#include "backends/cuda/device_buffer.h"
#include "backends/cuda/kernels/product.h"
#include "bundle/bundle.h"
#include "model/tensor_key.h"

namespace trtmc::cuda {

// W [rows, cols].
struct CudaMatrix {
  int rows = 0;
  int cols = 0;
  WeightFormat format = WeightFormat::kBf16;  // Of fragments.
  const std::byte* fragments = nullptr;       // As kernels/product.h says.
  const float* panels = nullptr;              // Else: f32, [panel][column][16 rows].
  int num_panels = 0;
  int steps = 0;
  // Of fragments where two matrices alternate row by row: 2, and which of the two this is.
  int row_distance = 1;
  int first_row = 0;
};

class CudaWeights {
 public:
  // Throws kExhausted.
  explicit CudaWeights(const Bundle& bundle);

  // Whether all matrices are fragments, so that those below exist.
  bool all_fragments() const { return all_fragments_; }
  const CudaMatrix& matrix(const TensorKey& key) const { return matrices_[index(key)]; }
  const float* norm(const TensorKey& key) const { return norms_[index(key)].data(); }
  // Rows of q, k and v, each beginning at a whole group of panels.
  CudaMatrix qkv(int layer) const { return qkv_[static_cast<size_t>(layer)]; }
  CudaMatrix gate_up(int layer) const { return gate_up_[static_cast<size_t>(layer)]; }
  // Where k's or v's rows begin in qkv().
  int first_k_row() const { return first_k_row_; }
  int first_v_row() const { return first_v_row_; }
  uint64_t bytes() const { return bytes_; }

 private:
  size_t index(const TensorKey& key) const;
  void add_norm(const TensorKey& key, const WeightView& weight);
  void add_floats(const TensorKey& key, const WeightView& weight);
  void add_alone(const Bundle& bundle, const TensorKey& key);
  void add_layer(const Bundle& bundle, int layer);
  // Zeros: `num_panels` panels, of which there are whole groups, of `cols` columns.
  CudaMatrix make_fragments(WeightFormat format, int num_panels, int rows, int cols);
  void pack(const WeightView& weight, const CudaMatrix& into, int first_row, int row_distance);

  size_t num_layers_;
  bool all_fragments_ = true;
  int first_k_row_ = 0;
  int first_v_row_ = 0;
  std::vector<CudaMatrix> matrices_, qkv_, gate_up_;
  std::vector<DeviceBuffer<float>> norms_;
  std::vector<DeviceBuffer<std::byte>> memory_;
  DeviceBuffer<std::byte> staging_;
  uint64_t bytes_ = 0;
};

}  // namespace trtmc::cuda
