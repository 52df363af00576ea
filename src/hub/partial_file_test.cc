#include "hub/partial_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/error.h"
#include "base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

class PartialFileTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "x.incomplete";
};

TEST_F(PartialFileTest, ChunksArriveInAnyOrder) {
  PartialFile file(path_, 10, 4);
  ASSERT_EQ(file.num_chunks(), 3u);
  EXPECT_EQ(file.chunk_end(2), 10u);
  file.append(2, as_bytes("89"));
  file.append(0, as_bytes("01"));
  file.append(1, as_bytes("4567"));
  file.append(0, as_bytes("23"));
  EXPECT_TRUE(file.complete());
  file.finish();
  EXPECT_EQ(read_file(path_), "0123456789");
}

TEST_F(PartialFileTest, GoesOnWhereItWasLeft) {
  {
    PartialFile file(path_, 10, 4);
    file.append(1, as_bytes("456"));
  }
  PartialFile file(path_, 10, 4);
  EXPECT_EQ(file.done(0), 0u);
  EXPECT_EQ(file.done(1), 3u);
  EXPECT_EQ(file.total_done(), 3u);
}

// Whatever stands there: too long, too short, or with counts that can't be.
TEST_F(PartialFileTest, BeginsAnewOverWhatItDidNotLeave) {
  for (const std::string& left :
       {std::string("0123"), std::string(34, '\xff'), std::string(100, 'x')}) {
    write_text(path_, left);
    const PartialFile file(path_, 10, 4);
    EXPECT_EQ(file.total_done(), 0u);
    EXPECT_EQ(std::filesystem::file_size(path_), 10u + 3 * 8);
  }
}

TEST_F(PartialFileTest, AChunkCanBeTakenBack) {
  PartialFile file(path_, 4, 4);
  file.append(0, as_bytes("abcd"));
  file.restart(0);
  file.append(0, as_bytes("ABCD"));
  file.finish();
  EXPECT_EQ(read_file(path_), "ABCD");
}

TEST_F(PartialFileTest, AnEmptyFileIsCompleteAtOnce) {
  PartialFile file(path_, 0, 4);
  EXPECT_TRUE(file.complete());
  file.finish();
  EXPECT_EQ(std::filesystem::file_size(path_), 0u);
}

TEST_F(PartialFileTest, AFullDiskIsFoundBeforeTheFirstByte) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1 << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Error error = error_of([&] { PartialFile(path_, 2 << 20, 4096); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(error.code(), ErrorCode::kExhausted);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// A link that somebody else put there must not be written through.
TEST_F(PartialFileTest, DoesNotFollowLinks) {
  write_text(folder_.path() / "other", "precious");
  std::filesystem::create_symlink("other", path_);
  EXPECT_EQ(error_of([&] { PartialFile(path_, 10, 4); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_file(folder_.path() / "other"), "precious");
}

}  // namespace
}  // namespace trtmc
