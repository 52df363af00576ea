// Executes a build plan: streams every tensor from the mapped checkpoint into the bundle.
#pragma once

#include <functional>

#include "base/thread_pool.h"
#include "builder/build_plan.h"

namespace trtmc {

// Called with bytes done and bytes in all, from the calling thread, often.
using BuildProgress = std::function<void(uint64_t done, uint64_t total)>;

// Memory stays bounded (well under 1 GB) whatever the model's size. The result depends on the plan
// alone.
void build_bundle(const BuildPlan& plan, const std::filesystem::path& path,
                  AtomicFile::IfExists if_exists, ThreadPool& pool, const BuildProgress& progress);

}  // namespace trtmc
