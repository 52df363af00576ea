// What this process may use of the machine's processors.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace trtmc {

// One logical CPU of each physical core that the affinity mask allows, rising. Which of them share
// a core stands in `cpus`/cpuN/topology/thread_siblings_list; one without that is a core of its
// own.
std::vector<int> usable_cores(const std::filesystem::path& cpus = "/sys/devices/system/cpu");

// How many CPUs' worth of time the process's control group, or one above it, grants; nothing if
// unlimited. Reads cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us, cpu.cfs_period_us) where
// `proc_self`/cgroup and `proc_self`/mountinfo say that they lie.
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& proc_self = "/proc/self");

// One thread a core, but none beyond the quota: it would only make the group stall all of them. At
// least one.
int num_threads_for(int num_cores, std::optional<double> cpu_quota);

}  // namespace trtmc
