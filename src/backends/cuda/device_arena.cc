#include "backends/cuda/device_arena.h"

#include "base/check.h"

namespace trtmc::cuda {
namespace {

constexpr int kAlignment = 4;  // Floats.

int64_t stride_of(int width) { return (int64_t{width} + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

float* DeviceArena::take(int rows, int64_t stride) {
  const size_t floats = static_cast<size_t>(rows) * static_cast<size_t>(stride);
  TRTMC_CHECK(floats_ + floats <= memory_.count(), "the arena is too small for the step");
  float* data = memory_.data() + floats_;
  floats_ += floats;
  return data;
}

Value DeviceArena::add(int rows, int width) {
  const int64_t stride = stride_of(width);
  Activation activation;
  activation.data = take(rows, stride);
  activation.rows = rows;
  activation.width = width;
  activation.stride = stride;
  return add_lazy(activation);
}

Value DeviceArena::add_lazy(const Activation& activation) {
  values_.push_back(activation);
  return Value{static_cast<int>(values_.size()) - 1};
}

void DeviceArena::materialise(Value value) {
  Activation& activation = get(value);
  activation.stride = stride_of(activation.width);
  activation.data = take(activation.rows, activation.stride);
}

void DeviceArena::release(const Mark& mark) {
  values_.resize(mark.num_values);
  floats_ = mark.floats;
}

}  // namespace trtmc::cuda
