#include "backends/cuda/cuda_kv.h"

#include <algorithm>
#include <vector>

namespace trtmc::cuda {
namespace {

constexpr int kFirstPositions = 4096;

KvCacheView view_of(const DecoderSpec& spec, KvType type) {
  return KvCacheView::of(type, spec.num_layers(), spec.num_kv_heads, spec.head_dim);
}

}  // namespace

uint64_t CudaKvCache::block_bytes(const DecoderSpec& spec, KvType type) {
  return static_cast<uint64_t>(view_of(spec, type).block_bytes());
}

CudaKvCache::CudaKvCache(const DecoderSpec& spec, KvType type, int num_blocks)
    : view_(view_of(spec, type)),
      block_bytes_(block_bytes(spec, type)),
      memory_(static_cast<size_t>(num_blocks) * block_bytes_, "memory for keys and values", true) {
  view_.memory = memory_.data();
}

void CudaKvCache::copy_block(BlockId from, BlockId to, CUstream_st* stream) {
  const auto at = [this](BlockId block) {
    return memory_.data() + static_cast<size_t>(block) * block_bytes_;
  };
  check_cuda(cudaMemcpyAsync(at(to), at(from), block_bytes_, cudaMemcpyDeviceToDevice, stream),
             "copying keys and values");
}

CudaRopeTable::CudaRopeTable(const DecoderSpec& spec)
    : table_(make_rope_table(spec.rope)),
      num_positions_(spec.context_length),
      memory_(static_cast<size_t>(spec.context_length) * static_cast<size_t>(half()) * 2,
              "memory for rotations") {}

void CudaRopeTable::reach(int last_position) {
  if (last_position < num_filled_) return;
  int end = std::max(kFirstPositions, num_filled_);
  while (end <= last_position) end *= 2;
  end = std::min(end, num_positions_);
  const auto width = static_cast<size_t>(half());
  std::vector<float> values(static_cast<size_t>(end - num_filled_) * width * 2);
  std::vector<float> cos(width), sin(width);
  size_t next = 0;
  for (int position = num_filled_; position < end; ++position) {
    rope_cos_sin(table_, position, cos, sin);
    for (size_t i = 0; i < width; ++i) {
      values[next++] = cos[i];
      values[next++] = sin[i];
    }
  }
  check_cuda(cudaMemcpy(memory_.data() + static_cast<size_t>(num_filled_) * width * 2,
                        values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
             "copying rotations to the GPU");
  // Such a copy may return before it has arrived, and the steps' stream waits for no other.
  check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "copying rotations to the GPU");
  num_filled_ = end;
}

}  // namespace trtmc::cuda
