// The meaning of every operation: one thread, plain loops, sums in double, results in float. Not
// for speed; the other backends are held to it.
#pragma once

#include <functional>
#include <vector>

#include "backends/backend.h"
#include "model/decoder_ops.h"
#include "model/rope_table.h"

namespace trtmc::reference {

// [rows, cols], row-major.
struct Matrix {
  Matrix(size_t num_rows, size_t num_cols)
      : rows(num_rows), cols(num_cols), values(num_rows * num_cols) {}
  std::span<float> row(size_t r) { return std::span(values).subspan(r * cols, cols); }
  std::span<const float> row(size_t r) const { return std::span(values).subspan(r * cols, cols); }

  size_t rows;
  size_t cols;
  std::vector<float> values;
};

// Keys and values by block: memory for a block is there from its first use.
class KvStore {
 public:
  KvStore(const DecoderSpec& spec, const Limits& limits, KvType type);

  // The key (or value) of one position in one layer: [kv_width].
  std::span<float> key(BlockId block, int layer, int offset);
  std::span<float> value(BlockId block, int layer, int offset);
  // x [kv_width], as a cache of this type holds it.
  void round(std::span<float> x) const;

  void copy_block(BlockId from, BlockId to);
  uint64_t committed_bytes() const;

 private:
  std::vector<float>& block_memory(BlockId block);

  size_t width_;
  size_t head_dim_;
  size_t block_size_;
  size_t block_floats_;
  KvType type_;
  std::vector<std::vector<float>>
      blocks_;  // [num_blocks]; per block [layer][k, v][position][width]
};

// Runs one step.
class ReferenceOps final : public DecoderOps {
 public:
  ReferenceOps(const Bundle& bundle, const RopeTable& rope_table, const StepBatch& batch,
               int block_size, KvStore& kv, const HiddenStateProbe& probe);

  Value embed(TensorKey table) override;
  Value rms_norm(Value x, TensorKey weight, float eps) override;
  Value linear(Value x, TensorKey weight) override;
  Value rope(Value x, const RopeSpec& rope, int num_heads) override;
  Value attention(Value q, Value k, Value v, int layer, const LayerSpec& spec) override;
  Value swiglu(Value gate, Value up) override;
  Value add(Value a, Value b) override;
  Value select_rows(Value x) override;
  void observe(int layer, Value x) override;

  const Matrix& get(Value value) const { return values_[static_cast<size_t>(value)]; }

 private:
  struct Entry {  // Where a position of a sequence lies.
    BlockId block;
    int offset;
  };
  Entry entry(size_t sequence, int position) const;
  void attend(size_t sequence, int position, int layer, const LayerSpec& spec,
              std::span<const float> q, std::span<float> out);
  Value keep(Matrix matrix);

  const Bundle& bundle_;
  const DecoderSpec& spec_;
  const RopeTable& rope_table_;
  const StepBatch& batch_;
  int block_size_;
  KvStore& kv_;
  const HiddenStateProbe& probe_;
  std::vector<Matrix> values_;
};

}  // namespace trtmc::reference
