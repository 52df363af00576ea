// Where a step's activations lie on the device: a stack, so that no step allocates.
#pragma once

#include <vector>

#include "backends/cuda/device_buffer.h"
#include "model/decoder_ops.h"

namespace trtmc::cuda {

// [rows, stride] floats on the device. A lazy one has no memory yet: it is rows of another, maybe
// normed, which a product takes on its way in.
struct Activation {
  float* data = nullptr;
  int rows = 0;
  int width = 0;
  int64_t stride = 0;

  const float* source = nullptr;  // Of a lazy one: [.., stride]
  bool selected = false;          // Only the step's rows with logits.
  const float* norm = nullptr;    // Null: as they are.

  bool is_lazy() const { return data == nullptr; }
};

class DeviceArena {
 public:
  explicit DeviceArena(size_t floats) : memory_(floats, "memory for activations on the GPU") {}

  // Uninitialised. Rows begin at multiples of 16 bytes.
  Value add(int rows, int width);
  Value add_lazy(const Activation& activation);
  // Memory for a lazy one; nothing else of it changes.
  void materialise(Value value);
  const Activation& get(Value value) const { return values_[static_cast<size_t>(value)]; }
  Activation& get(Value value) { return values_[static_cast<size_t>(value)]; }

  // Everything added after mark() dies with release().
  struct Mark {
    size_t num_values, floats;
  };
  Mark mark() const { return {values_.size(), floats_}; }
  void release(const Mark& mark);

  uint64_t bytes() const { return memory_.bytes(); }

 private:
  float* take(int rows, int64_t stride);

  DeviceBuffer<float> memory_;
  std::vector<Activation> values_;
  size_t floats_ = 0;
};

// Releases at its end what was added to the arena since.
class ArenaScope {
 public:
  explicit ArenaScope(DeviceArena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  DeviceArena& arena_;
  DeviceArena::Mark mark_;
};

}  // namespace trtmc::cuda
