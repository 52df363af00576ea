// Keys and values of sequences on the device. A slot holds those of one sequence, for every layer
// [1, KV heads, tokens, head_dim] in the layer's type: to the engine outside it is one KV block, as
// long as the context.
//
// In place, `tokens` is the capacity and the engine writes where it reads. Otherwise it is the
// number of tokens that the slot holds, so that what goes in is exactly the past; what comes out
// goes into a spare slot, which then takes the other's place.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "backends/cuda/device_buffer.h"
#include "graph/network_sink.h"
#include "model/decoder_spec.h"
#include "tensor/dtype.h"

namespace trtmc::tensorrt {

class SequenceCaches {
 public:
  enum Part { kKey = 0, kValue = 1 };

  // `types` are those of the layers. Throws kExhausted.
  SequenceCaches(const DecoderSpec& spec, const std::vector<DType>& types, int capacity,
                 int num_slots, bool in_place);

  // Of one slot, in bytes.
  static uint64_t slot_bytes(const DecoderSpec& spec, const std::vector<DType>& types,
                             int capacity);
  uint64_t bytes() const { return memory_.bytes(); }

  // Makes the slot hold its first `num_past` tokens and no more: some at its end were not to stay.
  void keep_first(int slot, int num_past, cudaStream_t stream);
  // Where a run reads, and where it writes. Aligned to 256 bytes.
  void* past(int slot, int layer, Part part) const {
    return address(places_[index(slot)], layer, part);
  }
  void* present(int slot, int layer, Part part) const;
  // A run was started after which the slot holds `num_tokens`.
  void advance(int slot, int num_tokens);

  void copy(int from, int to, cudaStream_t stream);

 private:
  static size_t index(int slot) { return static_cast<size_t>(slot); }
  void* address(int place, int layer, Part part) const;
  size_t row_bytes(int layer) const;  // Of one head at one position.

  int num_kv_heads_;
  int head_dim_;
  std::vector<DType> types_;
  bool in_place_;
  std::vector<uint64_t> offsets_;  // [layers * 2 + 1]: of keys and values within a place.
  std::vector<int> places_;        // By slot: where in memory_ it is.
  std::vector<int> lengths_;       // By slot: tokens that it holds.
  int spare_ = -1;                 // The place that no slot has; none in place.
  cuda::DeviceBuffer<std::byte> memory_;
};

}  // namespace trtmc::tensorrt
