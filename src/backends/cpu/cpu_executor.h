// One model on this machine's processors.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/cpu/cpu_ops.h"

namespace trtmc::cpu {

// Options as Backend::load takes them. `grain` is the block but for tests, which hold the two to
// the same bits.
std::unique_ptr<Executor> make_cpu_executor(const Bundle& bundle, const ExecutorOptions& options,
                                            Grain grain = Grain::kBlock);

}  // namespace trtmc::cpu
