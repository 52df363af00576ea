// Where keys and values lie on the device: [block][layer][k, v][KV head], and of a head in a block
// floats as [position][head_dim]; bf16 and fp8 in runs of 16 bytes, which is what a thread takes at
// once, and of bf16 the tensor core: [head_dim / run][position][run]. The scales of fp8, one a
// position, lie behind its codes. A head's width is rounded up to a run, at least 8, and zero
// behind it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/kv_type.h"

namespace trtmc::cuda {

inline constexpr int kMostHeadDim = 128;

constexpr int kv_component_bytes(KvType type) {
  return type == KvType::kF32 ? 4 : type == KvType::kBF16 ? 2 : 1;
}

struct KvCacheView {
  std::byte* memory;
  KvType type;  // Not kQ8.
  int num_layers;
  int num_kv_heads;
  int padded_dim;
  int head_bytes;  // Of one head's positions in one block.

  static constexpr int kBlockSize = 32;

  static constexpr KvCacheView of(KvType type, int num_layers, int num_kv_heads, int head_dim) {
    const int run = type == KvType::kFp8 ? 16 : 8;
    const int padded = (head_dim + run - 1) / run * run;
    const int scale_bytes = type == KvType::kFp8 ? static_cast<int>(sizeof(float)) : 0;
    return {.memory = nullptr,
            .type = type,
            .num_layers = num_layers,
            .num_kv_heads = num_kv_heads,
            .padded_dim = padded,
            .head_bytes = kBlockSize * (padded * kv_component_bytes(type) + scale_bytes)};
  }

  constexpr int64_t block_bytes() const {
    return int64_t{2} * num_layers * num_kv_heads * head_bytes;
  }
  // Where the keys (side 0) or values (side 1) of a head begin in a block.
  constexpr std::byte* head(int block, int layer, int side, int kv_head) const {
    const int64_t layers = int64_t{block} * num_layers + layer;
    return memory + ((layers * 2 + side) * num_kv_heads + kv_head) * head_bytes;
  }
  // Where a component lies from there. Up to the end of its run, others lie behind it.
  template <KvType kType>
  constexpr int place(int position, int d) const {
    constexpr int kBytes = kv_component_bytes(kType);
    constexpr int kRun = 16 / kBytes;
    return kType == KvType::kF32 ? (position * padded_dim + d) * kBytes
                                 : (d / kRun * kBlockSize + position) * 16 + d % kRun * kBytes;
  }
  // Of fp8: where a position's scale lies from there.
  constexpr int scale_place(int position) const {
    return kBlockSize * padded_dim + position * static_cast<int>(sizeof(float));
  }
};

}  // namespace trtmc::cuda
