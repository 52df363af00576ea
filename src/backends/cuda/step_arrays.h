// A step's integers on the device: filled on the host, carried over in one copy.
#pragma once

#include <cstdint>

#include "backends/backend.h"
#include "backends/cuda/device_buffer.h"
#include "backends/cuda/kernels/attention.h"

namespace trtmc::cuda {

// Where the arrays of a step lie on the device, and how large they are. Equal for steps of equal
// sizes, so that a captured graph finds them again.
struct StepView {
  int num_tokens = 0;
  int num_rows = 0;       // With logits.
  bool one_each = false;  // Every sequence has one token.
  bool all_rows = false;  // Every token's logits are wanted.
  int last_position = 0;  // The largest.
  int table_stride = 0;
  int num_tiles = 0;  // Of queries: of few rows if one_each.
  const int32_t* tokens = nullptr;
  const int32_t* positions = nullptr;
  const int32_t* token_sequences = nullptr;
  const int32_t* rows = nullptr;
  const int32_t* block_tables = nullptr;
  const QueryTile* tiles = nullptr;
};

class StepArrays {
 public:
  // `many_query_rows`: of a tile of queries where a sequence has several tokens.
  StepArrays(const DecoderSpec& spec, const Limits& limits, int many_query_rows);

  // Fills and copies. The batch is not needed any more afterwards.
  const StepView& load(const StepBatch& batch, CUstream_st* stream);
  const StepView& view() const { return view_; }

 private:
  int32_t* take(size_t count);

  int group_;  // Query heads of a KV head.
  int many_query_rows_;
  PinnedBuffer<int32_t> host_;
  DeviceBuffer<int32_t> device_;
  size_t used_ = 0;
  StepView view_;
};

}  // namespace trtmc::cuda
