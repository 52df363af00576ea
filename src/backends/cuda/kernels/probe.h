// What the device can do at most, measured by kernels that do nothing else; and whether this build
// has code for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/kernels/launch.h"

namespace trtmc::cuda {

// Reads all of `from`, 16 bytes a thread at a time.
struct ReadArgs {
  const void* from;
  size_t bytes;  // A multiple of 16.
  uint32_t* sink;
};
void launch_read(const ReadArgs& args, int multiprocessors, const Launch& how);

// bf16 multiply-adds on the tensor cores, from registers, by the instruction that the products use.
// Returns how many operations it does (a multiply-add is two).
double launch_multiply(uint32_t* sink, int multiprocessors, const Launch& how);

// The runtime's status of loading a kernel: 0, or 209 if there is no code for the device.
int kernel_status();

}  // namespace trtmc::cuda
