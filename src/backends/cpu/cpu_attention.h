// Keys and values in blocks, and attention over them.
#pragma once

#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/reserved_memory.h"

namespace trtmc::cpu {

// A block holds, for each layer and KV head, the keys [head_dim, kKvBlockSize] and the values
// [kKvBlockSize, head_dim] of its positions: both are read along the direction that is contiguous.
// Heads are filled up with zeros to a multiple of 16. Bytes have their scales [kKvBlockSize] behind
// them, the keys' and the values'.
class CpuKvCache {
 public:
  CpuKvCache(const DecoderSpec& spec, KvType type, int num_blocks);

  static uint64_t block_bytes(const DecoderSpec& spec, KvType type);

  KvType type() const { return type_; }
  int padded_head_dim() const { return static_cast<int>(head_dim_); }
  uint64_t committed_bytes() const { return num_touched_ * block_bytes_; }

  // Every block that a step stores into is announced first, by one thread.
  void touch(BlockId block);
  // k, v: [kv_width] of one position.
  void store(BlockId block, int layer, int offset, const float* k, const float* v);
  const void* keys(BlockId block, int layer, int head) const;
  const void* values(BlockId block, int layer, int head) const;
  void copy_block(BlockId from, BlockId to);

 private:
  std::byte* head_data(BlockId block, int layer, int head) const;
  // convert: head_to_bytes() or head_to_fp8().
  template <typename Code, typename Convert>
  void store_bytes(std::byte* keys, int offset, std::span<const float> k, std::span<const float> v,
                   Convert convert) const;

  int num_heads_;
  int real_head_dim_;
  size_t head_dim_;  // Padded.
  KvType type_;
  uint64_t block_bytes_;
  size_t half_bytes_;  // Of the keys of one head in one block, and of its values.
  ReservedMemory memory_;
  std::vector<bool> touched_;
  uint64_t num_touched_ = 0;
};

// Neighbouring tokens of one sequence, whose heads attend together.
struct AttentionTile {
  int sequence;
  int first_token;
  int num_tokens;
};
constexpr int kAttentionTileTokens = 16;

void append_attention_tiles(const StepBatch& batch, std::vector<AttentionTile>& tiles);

// What one tile's heads of one KV head need to attend.
struct AttentionJob {
  const KernelTable& kernels;
  const DecoderSpec& spec;
  const StepBatch& batch;
  const CpuKvCache& cache;
  int layer;
  int sliding_window;  // 0: none.
  const float* q;      // [tokens of the step, stride]
  float* out;          // Likewise.
  int64_t stride;
};

size_t attention_scratch_floats(const DecoderSpec& spec);
void attend(const AttentionJob& job, const AttentionTile& tile, int kv_head,
            std::span<float> scratch);

}  // namespace trtmc::cpu
