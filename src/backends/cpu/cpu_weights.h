// A bundle's weights as the kernels read them: matrices in place in the mapping, norms copied to
// padded rows.
#pragma once

#include <span>
#include <vector>

#include "bundle/bundle.h"
#include "model/tensor_key.h"

namespace trtmc::cpu {

struct CpuMatrix {
  DType dtype;
  int64_t rows;
  int64_t cols;
  std::span<const std::byte> panels;  // As tensor/packed_layout.h says.
  bool multiplies_rest = false;       // Activations are made bytes twice: them, then their rest.

  PackedLayout layout() const { return {dtype, rows, cols}; }
};

class CpuWeights {
 public:
  // A matrix that lies row-major in the bundle is packed into memory of its own, and a line of the
  // log says so.
  explicit CpuWeights(const Bundle& bundle);

  const CpuMatrix& matrix(const TensorKey& key) const { return matrices_[index(key)]; }
  // [width rounded up to 16], zeros behind the weights.
  const float* norm(const TensorKey& key) const { return norms_[index(key)].data(); }
  uint64_t bytes() const { return bytes_; }  // Mapped and copied.

 private:
  size_t index(const TensorKey& key) const;
  void add_matrix(const TensorKey& key, const WeightView& weight);
  void add_norm(const TensorKey& key, const WeightView& weight);

  size_t num_layers_;
  std::vector<CpuMatrix> matrices_;
  std::vector<std::vector<float>> norms_;
  std::vector<std::vector<std::byte>> copies_;
  uint64_t bytes_ = 0;
};

}  // namespace trtmc::cpu
