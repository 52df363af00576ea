#include "base/cpu_info.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace trtmc {
namespace {

namespace fs = std::filesystem;

// One mount of a control group file system that can hold CPU limits.
struct CgroupMount {
  bool v2;
  std::string root;  // The group that the mount point shows.
  fs::path point;
};

bool has_word(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// A line of mountinfo is "id parent major:minor root point options … - type source superoptions"
// (proc(5)).
std::optional<CgroupMount> parse_mount(const std::string& line) {
  const size_t dash = line.find(" - ");
  if (dash == std::string::npos) return std::nullopt;
  std::istringstream left(line.substr(0, dash));
  std::istringstream right(line.substr(dash + 3));
  std::string id, parent, device, root, point, type, source, super_options;
  left >> id >> parent >> device >> root >> point;
  right >> type >> source >> super_options;
  if (type == "cgroup2") return CgroupMount{true, root, point};
  if (type == "cgroup" && has_word(super_options, "cpu")) return CgroupMount{false, root, point};
  return std::nullopt;
}

// The process's group in the hierarchy of `mount`: lines are "id:controllers:path", with id 0 and
// no controllers for v2 (cgroups(7)).
std::optional<std::string> group_of(const fs::path& proc_self, const CgroupMount& mount) {
  std::ifstream file(proc_self / "cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (mount.v2 ? controllers.empty() : has_word(controllers, "cpu")) {
      return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

// The limit set in one group's own folder.
std::optional<double> own_quota(const fs::path& group, bool v2) {
  double quota = 0;
  double period = 0;
  if (v2) {
    std::ifstream(group / "cpu.max") >> quota >> period;  // "max 100000" leaves both zero.
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;  // -1: none.
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

void take_smaller(std::optional<double>& least, std::optional<double> value) {
  if (value && (!least || *value < *least)) least = value;
}

}  // namespace

std::vector<int> usable_cores(const fs::path& cpus) {
  // 8192 CPUs: the kernel refuses a mask that is shorter than its own.
  std::array<cpu_set_t, 8> mask{};
  const bool known = sched_getaffinity(0, sizeof(mask), mask.data()) == 0;
  std::vector<int> cores;
  std::set<std::string> seen;
  for (int cpu = 0; known && cpu < 8 * CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET_S(static_cast<size_t>(cpu), sizeof(mask), mask.data())) continue;
    std::string siblings;
    std::ifstream(cpus / ("cpu" + std::to_string(cpu)) / "topology/thread_siblings_list") >>
        siblings;
    if (siblings.empty() || seen.insert(siblings).second) cores.push_back(cpu);
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::optional<double> cgroup_cpu_quota(const fs::path& proc_self) {
  std::optional<double> least;
  std::ifstream mounts(proc_self / "mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto mount = parse_mount(line);
    if (!mount) continue;
    const auto group = group_of(proc_self, *mount);
    if (!group) continue;
    // Seen from a container, the group's path may begin with the mount's root or lie outside it.
    fs::path relative = fs::path(*group).lexically_relative(mount->root);
    if (relative.empty() || *relative.begin() == "..") relative = ".";
    fs::path folder = (mount->point / relative).lexically_normal();
    take_smaller(least, own_quota(mount->point, mount->v2));
    for (; folder != mount->point && folder.has_relative_path(); folder = folder.parent_path()) {
      take_smaller(least, own_quota(folder, mount->v2));
    }
  }
  return least;
}

int num_threads_for(int num_cores, std::optional<double> cpu_quota) {
  if (!cpu_quota || *cpu_quota >= num_cores) return num_cores;
  return std::max(1, static_cast<int>(*cpu_quota));
}

}  // namespace trtmc
