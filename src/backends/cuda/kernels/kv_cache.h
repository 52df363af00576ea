// Where keys and values lie on the device: [block][layer][k, v][KV head], and of a head in a block
// [position][head_dim] floats, or of bf16 what the tensor core takes at once: [head_dim / 8]
// [position][8]. A head's width is rounded up to 8 and zero behind it.
#pragma once

#include <cstdint>

namespace trtmc::cuda {

struct KvCacheView {
  void* memory;
  bool is_bf16;  // Else float.
  int num_layers;
  int num_kv_heads;
  int padded_dim;

  static constexpr int kBlockSize = 32;

  // Of one head's positions in one block, in elements.
  constexpr int64_t head_elements() const { return int64_t{kBlockSize} * padded_dim; }
  constexpr int64_t block_elements() const {
    return 2 * num_layers * num_kv_heads * head_elements();
  }
  // Where the keys (side 0) or values (side 1) of a head begin in a block.
  constexpr int64_t head_start(int block, int layer, int side, int kv_head) const {
    return block * block_elements() +
           ((int64_t{layer} * 2 + side) * num_kv_heads + kv_head) * head_elements();
  }
  // Where a component lies from there; up to the next multiple of 8, others lie behind it.
  constexpr int64_t place(int position, int d) const {
    return is_bf16 ? (d / 8 * kBlockSize + position) * 8 + d % 8 : position * padded_dim + d;
  }
};

}  // namespace trtmc::cuda
