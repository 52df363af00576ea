#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/error.h"
#include "base/mapping_list.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("trtmc-file-test-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::string get(const std::string& name) { return read_file(folder_ / name); }
  int num_entries() {
    return static_cast<int>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

TEST_F(FileTest, MapsAFile) {
  put("a", "hello");
  MappedFile file(folder_ / "a");
  EXPECT_EQ(as_text(file.bytes()), "hello");
  const MappedFile moved = std::move(file);
  EXPECT_EQ(as_text(moved.bytes()), "hello");
}

TEST_F(FileTest, MapsAnEmptyFileAsNoBytes) {
  put("a", "");
  EXPECT_TRUE(MappedFile(folder_ / "a").bytes().empty());
}

TEST_F(FileTest, MappingWhatIsNotAFileSaysSo) {
  EXPECT_EQ(code_of([&] { MappedFile file(folder_ / "missing"); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { MappedFile file(folder_); }), ErrorCode::kInvalidArgument);
}

TEST_F(FileTest, ANamedPipeIsRefusedWithoutWaitingForAWriter) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { MappedFile file(folder_ / "pipe"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { (void)has_file(folder_ / "pipe"); }), ErrorCode::kInvalidArgument);
}

TEST_F(FileTest, OnlyAnAbsentFileIsNotThere) {
  put("a", "");
  fs::create_symlink("a", folder_ / "to_a");
  fs::create_symlink("nothing", folder_ / "to_nothing");
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_TRUE(has_file(folder_ / "a"));
  EXPECT_TRUE(has_file(folder_ / "to_a"));
  EXPECT_FALSE(has_file(folder_ / "b"));
  EXPECT_FALSE(has_file(folder_ / "a" / "b"));
  EXPECT_EQ(code_of([&] { (void)has_file(folder_ / "to_nothing"); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { (void)has_file(folder_ / "loop"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { (void)has_file(folder_); }), ErrorCode::kInvalidArgument);
}

TEST_F(FileTest, AMappingIsFoundByItsAddressWhileItLasts) {
  put("a", "hello");
  const std::byte* address = nullptr;
  {
    MappedFile file(folder_ / "a");
    address = file.bytes().data();
    const MappedFile moved = std::move(file);
    EXPECT_STREQ(mapped_path_at(address), (folder_ / "a").c_str());
    EXPECT_STREQ(mapped_path_at(address + 4), (folder_ / "a").c_str());
    EXPECT_EQ(mapped_path_at(address + 5), nullptr);
  }
  EXPECT_EQ(mapped_path_at(address), nullptr);
}

TEST_F(FileTest, WhatIsNoFileIsNotReplaced) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const char* name : {"pipe", "."}) {
    EXPECT_EQ(code_of([&] { AtomicFile file(folder_ / name, 1, AtomicFile::IfExists::kReplace); }),
              ErrorCode::kInvalidArgument);
  }
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
}

TEST_F(FileTest, AnAtomicFileAppearsWholeAtCommit) {
  {
    AtomicFile file(folder_ / "a", 5, AtomicFile::IfExists::kRefuse);
    file.write_at(3, as_bytes("lo"));
    file.write_at(0, as_bytes("hel"));
    EXPECT_FALSE(fs::exists(folder_ / "a"));
    file.commit();
  }
  EXPECT_EQ(get("a"), "hello");
  EXPECT_EQ(num_entries(), 1);
}

TEST_F(FileTest, AnAtomicFileThatIsDroppedLeavesNothing) {
  { AtomicFile file(folder_ / "a", 100, AtomicFile::IfExists::kRefuse); }
  EXPECT_EQ(num_entries(), 0);
}

TEST_F(FileTest, AKilledWriterLeavesNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder_ / "a", 100, AtomicFile::IfExists::kRefuse);
    file.write_at(0, as_bytes("half"));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(num_entries(), 0);
}

TEST_F(FileTest, AnExistingFileIsReplacedOnlyOnRequest) {
  put("a", "old");
  EXPECT_EQ(code_of([&] { AtomicFile file(folder_ / "a", 3, AtomicFile::IfExists::kRefuse); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(get("a"), "old");
  AtomicFile file(folder_ / "a", 3, AtomicFile::IfExists::kReplace);
  file.write_at(0, as_bytes("new"));
  EXPECT_EQ(get("a"), "old");
  file.commit();
  EXPECT_EQ(get("a"), "new");
  EXPECT_EQ(num_entries(), 1);
}

TEST_F(FileTest, AFileThatAppearsMeanwhileIsNotOverwritten) {
  AtomicFile file(folder_ / "a", 3, AtomicFile::IfExists::kRefuse);
  put("a", "theirs");
  EXPECT_EQ(code_of([&] { file.commit(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(get("a"), "theirs");
}

// open() with O_TMPFILE fails in this process from now on, as on a file system without unnamed
// files.
bool refuse_unnamed_files() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
                           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
                           BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(FileTest, AFileThatAppearsMeanwhileIsNotOverwrittenWithoutUnnamedFilesEither) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!refuse_unnamed_files()) ::_exit(99);
    AtomicFile free(folder_ / "b", 3, AtomicFile::IfExists::kRefuse);
    if (num_entries() != 1) ::_exit(98);  // The hidden file.
    free.write_at(0, as_bytes("new"));
    free.commit();
    const ErrorCode code = code_of([&] {
      AtomicFile taken(folder_ / "a", 3, AtomicFile::IfExists::kRefuse);
      put("a", "theirs");
      taken.commit();
    });
    ::_exit(code == ErrorCode::kInvalidArgument ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 99) GTEST_SKIP() << "no filter on system calls";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(get("a"), "theirs");
  EXPECT_EQ(get("b"), "new");
  EXPECT_EQ(num_entries(), 2);
}

TEST_F(FileTest, MoreThanTheDiskHoldsIsRefusedAtTheStart) {
  EXPECT_EQ(code_of([&] {
              AtomicFile file(folder_ / "a", uint64_t{1} << 60, AtomicFile::IfExists::kRefuse);
            }),
            ErrorCode::kExhausted);
  EXPECT_EQ(num_entries(), 0);
}

TEST_F(FileTest, AFolderThatIsMissingIsNamed) {
  EXPECT_EQ(
      code_of([&] { AtomicFile file(folder_ / "no" / "a", 1, AtomicFile::IfExists::kRefuse); }),
      ErrorCode::kNotFound);
}

TEST_F(FileTest, ANameThatNoFolderCanHoldIsRefusedAtTheStart) {
  const fs::path longer = folder_ / std::string(300, 'x');  // Linux allows 255 bytes.
  EXPECT_EQ(code_of([&] { AtomicFile file(longer, 1, AtomicFile::IfExists::kRefuse); }),
            ErrorCode::kInvalidArgument);
}

TEST_F(FileTest, ReadingStopsAtTheLimit) {
  put("a", std::string(1000, 'x'));
  EXPECT_EQ(read_file(folder_ / "a", 1000).size(), 1000u);
  EXPECT_EQ(code_of([&] { (void)read_file(folder_ / "a", 999); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { (void)read_file(folder_); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace trtmc
