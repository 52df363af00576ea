// Where keys and values lie on the device: [block][layer][k, v][KV head][position][head_dim], a
// head's width rounded up to 8 and zero behind it.
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
};

}  // namespace trtmc::cuda
