// The CUDA runtime as far as the tensorrt backend uses it, in the memory of the host: linked in
// place of the real one.
#pragma once

#include <cstdint>
#include <functional>

namespace trtmc::fake_cuda {

void set_free_bytes(uint64_t bytes);

// Runs `work` now, or, while a stream is captured, whenever what was captured is launched.
void run_or_capture(std::function<void()> work);
int launched_graphs();  // Since the program started.

}  // namespace trtmc::fake_cuda
