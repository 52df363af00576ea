// Where a step's activations lie: a stack in reserved memory, so that no step allocates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/reserved_memory.h"
#include "model/decoder_ops.h"

namespace trtmc::cpu {

// [rows, stride]: a row's width rounded up to 16 floats, and zeros behind the width.
struct Activation {
  float* data;
  int rows;
  int64_t width;
  int64_t stride;

  float* row(int64_t r) const { return data + r * stride; }
};

class ActivationArena {
 public:
  explicit ActivationArena(size_t floats);

  // Uninitialised.
  Value add(int rows, int64_t width);
  const Activation& get(Value value) const { return values_[static_cast<size_t>(value)]; }

  // Everything added after mark() dies with release().
  struct Mark {
    size_t num_values;
    size_t floats;
  };
  Mark mark() const { return {values_.size(), floats_}; }
  void release(const Mark& mark);
  void clear() { release({0, 0}); }

  uint64_t most_bytes() const { return most_floats_ * sizeof(float); }

 private:
  ReservedMemory memory_;
  std::vector<Activation> values_;
  size_t floats_ = 0;
  size_t most_floats_ = 0;
};

// Releases at its end what was added to the arena since.
class ArenaScope {
 public:
  explicit ArenaScope(ActivationArena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  ActivationArena& arena_;
  ActivationArena::Mark mark_;
};

}  // namespace trtmc::cpu
