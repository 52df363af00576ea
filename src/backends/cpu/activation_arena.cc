#include "backends/cpu/activation_arena.h"

#include <algorithm>

#include "backends/cpu/kernels/kernel_table.h"
#include "base/check.h"

namespace trtmc::cpu {

ActivationArena::ActivationArena(size_t floats) : memory_(floats * sizeof(float)) {}

Value ActivationArena::add(int rows, int64_t width) {
  const int64_t stride = round_up(width, 16);
  const size_t floats = static_cast<size_t>(rows) * static_cast<size_t>(stride);
  TRTMC_CHECK((floats_ + floats) * sizeof(float) <= memory_.bytes(), "the arena is too small");
  values_.push_back({reinterpret_cast<float*>(memory_.data()) + floats_, rows, width, stride});
  floats_ += floats;
  most_floats_ = std::max(most_floats_, floats_);
  return Value{static_cast<int>(values_.size()) - 1};
}

void ActivationArena::release(const Mark& mark) {
  values_.resize(mark.num_values);
  floats_ = mark.floats;
}

}  // namespace trtmc::cpu
