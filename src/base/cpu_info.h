// What this process may use of the machine's processors.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace trtmc {

// One logical CPU of each physical core that the affinity mask allows, rising.
std::vector<int> usable_cores();

// How many CPUs' worth of time the process's control group, or one above it, grants; nothing if
// unlimited. Reads cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us, cpu.cfs_period_us) where
// `proc_self`/cgroup and `proc_self`/mountinfo say that they lie.
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& proc_self = "/proc/self");

}  // namespace trtmc
