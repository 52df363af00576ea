// A build that can't be finished: no disk space, or killed. What stood at the target stays, and
// nothing else is left behind.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "base/error.h"
#include "builder/builder.h"
#include "checkpoint/hf_directory.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

namespace trtmc {
namespace {

constexpr int kMountRefused = 99;

// The wait status of `body` in a process of its own. An Error ends it with its exit status.
int status_of_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
      ::_exit(0);
    } catch (const Error& error) {
      ::_exit(exit_status(error.code()));
    } catch (...) {
      ::_exit(exit_status(ErrorCode::kInternal));
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

bool exited_with(int status, ErrorCode code) {
  return WIFEXITED(status) && WEXITSTATUS(status) == exit_status(code);
}

// No file of this process may grow past `bytes`; the attempt fails instead of ending the process.
void limit_file_size(uint64_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
}

class BuildFaults : public ::testing::Test {
 protected:
  BuildFaults() {
    write_tiny_checkpoint(folder_.path() / "checkpoint", {});
    std::filesystem::create_directory(out());
  }

  std::filesystem::path out() const { return folder_.path() / "out"; }
  std::filesystem::path target() const { return out() / "x.trtmc"; }
  bool left_nothing() const { return std::filesystem::is_empty(out()); }

  void build(const BuildProgress& progress = {}) const {
    ThreadPool pool(2);
    build_bundle(plan_build(open_hf_directory(folder_.path() / "checkpoint"), {}), target(),
                 AtomicFile::IfExists::kReplace, pool, progress);
  }

  // Builds, and calls `fault` once when half is done.
  void build_with_fault_half_way(const std::function<void()>& fault) const {
    bool called = false;
    build([&](uint64_t done, uint64_t total) {
      if (called || done < total / 2) return;
      called = true;
      fault();
    });
  }

  TemporaryFolder folder_;
};

TEST_F(BuildFaults, WorksWithoutAFault) {
  EXPECT_EQ(status_of_child([&] { build(); }), 0);
  EXPECT_TRUE(std::filesystem::exists(target()));
}

TEST_F(BuildFaults, ADiskThatIsTooSmallIsExhausted) {
  const int status = status_of_child([&] {
    limit_file_size(65536);
    build();
  });
  EXPECT_TRUE(exited_with(status, ErrorCode::kExhausted)) << status;
  EXPECT_TRUE(left_nothing());
}

TEST_F(BuildFaults, ADiskThatIsTooSmallIsFoundBeforeTheWork) {
  const int status = status_of_child([&] {
    limit_file_size(65536);
    build([](uint64_t, uint64_t) { ::_exit(1); });
  });
  EXPECT_TRUE(exited_with(status, ErrorCode::kExhausted)) << status;
}

TEST_F(BuildFaults, ADiskThatFillsUpMeanwhileIsExhausted) {
  const int status =
      status_of_child([&] { build_with_fault_half_way([] { limit_file_size(4096); }); });
  EXPECT_TRUE(exited_with(status, ErrorCode::kExhausted)) << status;
  EXPECT_TRUE(left_nothing());
}

TEST_F(BuildFaults, AFullFileSystemIsExhausted) {
  const int status = status_of_child([&] {
    // A mount that this process alone sees.
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", out().c_str(), "tmpfs", 0, "size=128k") != 0) {
      ::_exit(kMountRefused);
    }
    try {
      build();
    } catch (const Error&) {
      if (!left_nothing()) ::_exit(1);
      throw;
    }
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMountRefused) {
    GTEST_SKIP() << "this user may not mount a small file system";
  }
  EXPECT_TRUE(exited_with(status, ErrorCode::kExhausted)) << status;
}

TEST_F(BuildFaults, AKilledBuildLeavesNothing) {
  const int status = status_of_child([&] { build_with_fault_half_way([] { ::raise(SIGKILL); }); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_TRUE(left_nothing());
}

TEST_F(BuildFaults, AKilledBuildLeavesTheOldFile) {
  write_text(target(), "old");
  status_of_child([&] { build_with_fault_half_way([] { ::raise(SIGKILL); }); });
  EXPECT_EQ(read_file(target()), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(out()), {}), 1);
}

}  // namespace
}  // namespace trtmc
