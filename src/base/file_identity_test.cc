#include "base/file_identity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

#include "tests/support/error_of.h"

namespace trtmc {
namespace {

namespace fs = std::filesystem;

class FileIdentityTest : public testing::Test {
 protected:
  FileIdentityTest() {
    fs::create_directories(folder_);
    put("file");
  }
  ~FileIdentityTest() override { fs::remove_all(folder_); }

  void put(const char* name) { std::ofstream(folder_ / name) << "abc"; }

  const fs::path folder_ =
      fs::temp_directory_path() / ("trtmc-file-identity-" + std::to_string(::getpid()));
  const fs::path path_ = folder_ / "file";
};

TEST_F(FileIdentityTest, AFileStaysWhatItIsAlsoBehindALink) {
  const FileIdentity identity = identity_of(path_);
  EXPECT_EQ(identity.bytes, 3);
  EXPECT_EQ(identity_of(path_), identity);
  fs::create_symlink(path_, folder_ / "link");
  EXPECT_EQ(identity_of(folder_ / "link"), identity);
}

TEST_F(FileIdentityTest, AnotherFileInItsPlaceIsAnother) {
  const FileIdentity identity = identity_of(path_);
  const auto time = fs::last_write_time(path_);
  put("other");
  fs::last_write_time(folder_ / "other", time);
  fs::rename(folder_ / "other", path_);
  EXPECT_NE(identity_of(path_), identity);
}

TEST_F(FileIdentityTest, AFileThatWasWrittenToIsAnother) {
  const FileIdentity identity = identity_of(path_);
  const auto later = fs::last_write_time(path_) + std::chrono::milliseconds(1);
  fs::last_write_time(path_, later);
  EXPECT_NE(identity_of(path_), identity);
}

TEST_F(FileIdentityTest, AnAbsentFileIsNamed) {
  const auto error = error_of([&] { identity_of(folder_ / "none"); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace trtmc
