// DecoderOps on the device: every operation launches kernels and returns. The eight operations
// stand for themselves; where all matrices are fragments the two blocks do the same in five
// launches, to the same bits.
#pragma once

#include "backends/cuda/cuda_attention.h"
#include "backends/cuda/cuda_ops_parts.h"
#include "backends/cuda/device_arena.h"
#include "backends/cuda/kernels/product.h"
#include "backends/cuda/step_arrays.h"
#include "model/decoder_ops.h"

namespace trtmc::cuda {

class CudaOps final : public DecoderOps {
 public:
  explicit CudaOps(const CudaOpsParts& parts);
  CudaOps(const CudaOps&) = delete;  // What it has refers to it.
  CudaOps& operator=(const CudaOps&) = delete;

  // Begins a step; what the last one left ends here. `logits`: [num_rows, stride] to be filled.
  void begin(const StepView& step, float* logits, int64_t logits_stride, const Launch& how);
  uint64_t scratch_bytes() const;

  Value embed(TensorKey table) override;
  Value rms_norm(Value x, TensorKey weight, float eps) override;
  Value linear(Value x, TensorKey weight) override;
  Value rope(Value x, const RopeSpec& rope, int num_heads) override;
  Value attention(Value q, Value k, Value v, int layer, const LayerSpec& spec) override;
  Value swiglu(Value gate, Value up) override;
  Value add(Value a, Value b) override;
  Value select_rows(Value x) override;
  Value attention_block(const DecoderSpec& spec, int layer, Value x) override;
  Value mlp_block(const DecoderSpec& spec, int layer, Value x) override;
  void observe(int layer, Value x) override;

 private:
  // Terms between kernels, by what they are as wide as.
  struct Terms {
    Terms(const DecoderSpec& spec, int num_terms, int tokens);
    uint64_t bytes() const;
    DeviceBuffer<uint32_t> hidden, mixed, inner;
  };

  bool fused() const { return parts_.grain == Grain::kBlock && parts_.weights.all_fragments(); }
  // For so many tokens. Those of few lie close together.
  const Terms& terms(int num_tokens) const { return num_tokens <= kMostGemvTokens ? few_ : many_; }
  TermBuffer buffer(const DeviceBuffer<uint32_t>& memory, int width, int num_tokens) const;
  TermBuffer mixed() const;
  TermBuffer inner() const;
  void clear_behind_columns();
  Activation lazy_source(Value x);
  const float* floats(Value x);
  // args.x (maybe normed) or args.in times a matrix, with what `args` says of the output.
  void multiply(ProductArgs args, const CudaMatrix& matrix);
  ProductArgs product_of(const Activation& x) const;
  // Launches a gemv if one fits that takes norms of such a width, or none if it is 0.
  bool launch_gemv_with(const ProductArgs& args, int norm_width) const;
  void launch_gemm_of(const ProductArgs& args) const;
  void multiply_floats(Value x, const CudaMatrix& matrix, float* out, int64_t stride);
  Value add_product(Value x, TermBuffer in, const TensorKey& weight);
  template <typename Compose>
  Value composed(Value x, Compose compose);

  CudaOpsParts parts_;
  DeviceArena arena_;
  Terms few_, many_;
  int many_block_ = 0;  // How many_ was last laid out.
  CudaAttention attention_;

  StepView step_;
  float* logits_ = nullptr;
  int64_t logits_stride_ = 0;
  Launch how_{};
  std::vector<float> probed_;
};

}  // namespace trtmc::cuda
