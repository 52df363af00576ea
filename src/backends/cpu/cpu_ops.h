// DecoderOps over the kernels of one instruction set and a thread pool. The eight operations stand
// for themselves; the two blocks do the same with fewer barriers, to the same bits.
#pragma once

#include <initializer_list>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/activation_arena.h"
#include "backends/cpu/cpu_attention.h"
#include "backends/cpu/cpu_weights.h"
#include "backends/cpu/kernels/kernel_table.h"
#include "base/thread_pool.h"
#include "model/decoder_ops.h"
#include "model/rope_table.h"

namespace trtmc::cpu {

enum class Grain { kBlock, kOperation };

class CpuOps final : public DecoderOps {
 public:
  // Borrows everything; made once, used for one step after the other.
  CpuOps(const DecoderSpec& spec, const KernelTable& kernels, const CpuWeights& weights,
         const Limits& limits, CpuKvCache& cache, ThreadPool& pool, Grain grain,
         const HiddenStateProbe& probe);

  // Begins a step; what the last one left in the arena ends here.
  void begin(const StepBatch& batch);
  const Activation& get(Value value) const { return arena_.get(value); }
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
  // A matrix product to be done, and where its result goes.
  struct Product {
    const CpuMatrix* matrix;
    Activation y;
  };
  // Tokens as products read them: with weights of floats, with quantised ones.
  struct PackedTokens {
    struct Form {
      const float* data;
      int64_t width;  // Words of a token.
    };
    int num_tokens;
    Form floats;
    Form bytes;
    Form rest;  // What the bytes leave, as bytes.
  };
  struct PanelRange {
    int64_t first;
    int64_t count;
  };

  int num_tokens() const { return static_cast<int>(batch_.tokens.size()); }
  // Tokens of `x` normed (if there is a weight) and packed in the forms that `readers` take.
  PackedTokens pack(Value x, std::initializer_list<const CpuMatrix*> readers,
                    const float* norm_weight = nullptr, float eps = 0);
  int64_t num_units(const CpuMatrix& matrix, int num_tokens) const;
  PanelRange unit_panels(const CpuMatrix& matrix, int num_tokens, int64_t unit) const;
  void multiply(const PackedTokens& x, const Product& product, PanelRange panels) const;
  void multiply_all(const PackedTokens& x, std::span<const Product> products);
  // x += W by.
  void multiply_onto(Value by, TensorKey weight, Value x);
  void rotate(const Activation& x, int token, int num_heads) const;
  void attend_all(Value q, Value out, int layer, const LayerSpec& spec);
  void store_token(Value k, Value v, int layer, int token);
  template <typename Compose>
  Value composed(Value x, Compose compose);

  const DecoderSpec& spec_;
  const KernelTable& kernels_;
  const CpuWeights& weights_;
  CpuKvCache& cache_;
  ThreadPool& pool_;
  Grain grain_;
  const HiddenStateProbe& probe_;
  RopeTable rope_table_;
  ActivationArena arena_;

  StepBatch batch_{};
  std::vector<AttentionTile> attention_tiles_;
  std::vector<float> cos_, sin_;                       // [tokens of the step, rotary_dim / 2]
  std::vector<int> token_sequence_;                    // [tokens of the step]
  std::vector<std::vector<float>> attention_scratch_;  // One a thread.
  std::vector<float> probed_;
};

}  // namespace trtmc::cpu
