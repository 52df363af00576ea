// Attention of a step on the device: which kernels rotate, store and attend.
#pragma once

#include "backends/cuda/cuda_ops_parts.h"
#include "backends/cuda/device_buffer.h"
#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/step_arrays.h"

namespace trtmc::cuda {

class CudaAttention {
 public:
  explicit CudaAttention(const CudaOpsParts& parts);

  // Begins a step.
  void begin(const StepView& step, const Launch& how);
  uint64_t scratch_bytes() const { return partial_.bytes() + counters_.bytes(); }

  // Rotates each of a row's heads in place. x: [tokens of the step, stride].
  void rotate(float* x, int64_t stride, int num_heads) const;

  // Of every token of the step, one behind the other: [tokens, stride] each.
  struct Heads {
    float* q;
    float* k;
    const float* v;
    int64_t stride;
    bool rotated;  // Or not to be rotated.
  };
  // Either rows of floats or, where those are null, terms.
  struct Output {
    float* rows;  // [tokens, stride]
    int64_t stride;
    TermBuffer terms;
  };
  // Rotates q and k where that is still to be done, stores k and v, and attends.
  void attend(int layer, const LayerSpec& spec, const Heads& heads, const Output& out) const;

 private:
  AttentionArgs args_of(int layer, const LayerSpec& spec, const Heads& heads,
                        const Output& out) const;
  void store(const AttentionArgs& args, const Heads& heads) const;

  const CudaOpsParts& parts_;
  DeviceBuffer<float> partial_;
  DeviceBuffer<int32_t> counters_;

  StepView step_;
  bool splits_ = false;  // A block for each chunk, which rotates and stores too.
  Launch how_{};
};

}  // namespace trtmc::cuda
