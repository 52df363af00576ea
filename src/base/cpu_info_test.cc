#include "base/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>

namespace trtmc {
namespace {

namespace fs = std::filesystem;

// Files that stand in for the system's.
class MadeUpFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        fs::temp_directory_path() / ("trtmc_cpus_" + std::to_string(getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_ / "proc");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

  fs::path root_;
};

// A made-up /proc/self and control group tree.
class CgroupQuota : public MadeUpFiles {
 protected:
  void mount(const std::string& group, const std::string& type, const std::string& options) {
    write("proc/mountinfo", "22 1 0:20 / /proc rw - proc proc rw\n31 23 0:28 " + group + " " +
                                (root_ / "fs").string() + " rw,relatime - " + type + " x " +
                                options + "\n");
  }
  std::optional<double> quota() { return cgroup_cpu_quota(root_ / "proc"); }
};

TEST_F(CgroupQuota, IsAbsentWithoutControlGroups) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(CgroupQuota, OfVersion2IsQuotaOverPeriod) {
  write("proc/cgroup", "0::/team/job\n");
  mount("/", "cgroup2", "rw");
  write("fs/team/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 2.5);
}

TEST_F(CgroupQuota, OfVersion2MayBeMax) {
  write("proc/cgroup", "0::/team\n");
  mount("/", "cgroup2", "rw");
  write("fs/team/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CgroupQuota, IsTheSmallestOnTheWayUp) {
  write("proc/cgroup", "0::/a/b/c\n");
  mount("/", "cgroup2", "rw");
  write("fs/a/cpu.max", "150000 50000\n");
  write("fs/a/b/cpu.max", "400000 100000\n");
  write("fs/a/b/c/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 3.0);
}

TEST_F(CgroupQuota, OfVersion1ReadsTheCpuController) {
  write("proc/cgroup", "4:memory:/other\n3:cpu,cpuacct:/job\n");
  mount("/", "cgroup", "rw,cpu,cpuacct");
  write("fs/job/cpu.cfs_quota_us", "50000\n");
  write("fs/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(CgroupQuota, OfVersion1MayBeMinusOne) {
  write("proc/cgroup", "1:cpu:/\n");
  mount("/", "cgroup", "rw,cpu");
  write("fs/cpu.cfs_quota_us", "-1\n");
  write("fs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CgroupQuota, IgnoresOtherControllersOfVersion1) {
  write("proc/cgroup", "4:cpuset:/job\n");
  mount("/", "cgroup", "rw,cpuset");
  write("fs/job/cpu.cfs_quota_us", "50000\n");
  write("fs/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
}

// A container sees its own group as the mount's root while /proc/self/cgroup has the host's path.
TEST_F(CgroupQuota, OfAContainerIsReadAtTheMountsRoot) {
  write("proc/cgroup", "0::/host/container\n");
  mount("/host/container", "cgroup2", "rw");
  write("fs/cpu.max", "100000 100000\n");
  EXPECT_EQ(quota(), 1.0);
}

TEST_F(CgroupQuota, OfAGroupOutsideTheMountIsThatOfTheMountsRoot) {
  write("proc/cgroup", "0::/../elsewhere\n");
  mount("/", "cgroup2", "rw");
  write("fs/cpu.max", "700000 100000\n");
  EXPECT_EQ(quota(), 7.0);
}

// The quota of each version, as it meets cores.
TEST_F(CgroupQuota, BoundsTheThreads) {
  write("proc/cgroup", "0::/job\n");
  mount("/", "cgroup2", "rw");
  write("fs/job/cpu.max", "350000 100000\n");
  EXPECT_EQ(num_threads_for(8, quota()), 3);
  EXPECT_EQ(num_threads_for(2, quota()), 2);
  write("proc/cgroup", "3:cpu,cpuacct:/job\n");
  mount("/", "cgroup", "rw,cpu,cpuacct");
  write("fs/job/cpu.cfs_quota_us", "200000\n");
  write("fs/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(num_threads_for(8, quota()), 2);
}

TEST(NumThreads, AreOneACoreWithoutAQuota) {
  EXPECT_EQ(num_threads_for(1, std::nullopt), 1);
  EXPECT_EQ(num_threads_for(96, std::nullopt), 96);
}

TEST(NumThreads, AreNotMoreThanTheQuotaAndAtLeastOne) {
  EXPECT_EQ(num_threads_for(8, 0.5), 1);
  EXPECT_EQ(num_threads_for(8, 1.99), 1);
  EXPECT_EQ(num_threads_for(8, 7.9), 7);
  EXPECT_EQ(num_threads_for(8, 8.0), 8);
  EXPECT_EQ(num_threads_for(8, 64.0), 8);
}

class UsableCores : public MadeUpFiles {
 protected:
  void SetUp() override {
    MadeUpFiles::SetUp();
    ASSERT_EQ(sched_getaffinity(0, sizeof(mask_), &mask_), 0);
  }
  cpu_set_t mask_;
};

TEST_F(UsableCores, AreAllCpusWhereNothingIsKnownOfSiblings) {
  EXPECT_EQ(usable_cores(root_).size(), static_cast<size_t>(CPU_COUNT(&mask_)));
}

TEST_F(UsableCores, AreTheFirstOfEachCoresSiblings) {
  const std::vector<int> cpus = usable_cores(root_);
  for (const int cpu : cpus) {
    write("cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", "0-63\n");
  }
  EXPECT_EQ(usable_cores(root_), std::vector<int>{cpus.front()});
}

TEST_F(UsableCores, FollowTheAffinityMask) {
  const int first = usable_cores().front();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_cores(), std::vector<int>{first});
  ASSERT_EQ(sched_setaffinity(0, sizeof(mask_), &mask_), 0);
}

}  // namespace
}  // namespace trtmc
