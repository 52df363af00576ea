// Memory of keys and values on the device, and the table of rotations: what outlives a step.
#pragma once

#include <cstdint>

#include "backends/backend.h"
#include "backends/cuda/device_buffer.h"
#include "backends/cuda/kernels/kv_cache.h"
#include "model/rope_table.h"

namespace trtmc::cuda {

class CudaKvCache {
 public:
  CudaKvCache(const DecoderSpec& spec, KvType type, int num_blocks);

  static uint64_t block_bytes(const DecoderSpec& spec, KvType type);
  const KvCacheView& view() const { return view_; }
  uint64_t bytes() const { return memory_.bytes(); }
  void copy_block(BlockId from, BlockId to, CUstream_st* stream);

 private:
  KvCacheView view_;
  uint64_t block_bytes_;
  DeviceBuffer<std::byte> memory_;
};

// cos and sin of every position, as model/rope_table.h has them, computed as far as steps have
// come.
class CudaRopeTable {
 public:
  explicit CudaRopeTable(const DecoderSpec& spec);

  // Before a step that reaches `last_position`.
  void reach(int last_position);
  const float* data() const { return memory_.data(); }  // [position][half][cos, sin]
  int half() const { return static_cast<int>(table_.inverse_frequencies.size()); }

 private:
  RopeTable table_;
  int num_positions_;
  int num_filled_ = 0;
  DeviceBuffer<float> memory_;
};

}  // namespace trtmc::cuda
