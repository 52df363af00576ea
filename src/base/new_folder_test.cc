#include "base/new_folder.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using std::filesystem::exists;
using std::filesystem::is_empty;

TEST(NewFolder, AppearsWithEverythingInIt) {
  const TemporaryFolder around;
  const auto path = around.path() / "new";
  NewFolder folder(path);
  write_text(folder.hidden() / "a", "text");
  EXPECT_FALSE(exists(path));
  folder.commit();
  EXPECT_EQ(read_file(path / "a"), "text");
  EXPECT_FALSE(exists(folder.hidden()));
}

TEST(NewFolder, LeavesNothingWithoutCommit) {
  const TemporaryFolder around;
  {
    const NewFolder folder(around.path() / "new/");  // A slash at the end says the same.
    write_text(folder.hidden() / "a", "text");
  }
  EXPECT_TRUE(is_empty(around.path()));
}

TEST(NewFolder, TakesNoNameThatIsTaken) {
  const TemporaryFolder around;
  const auto path = around.path() / "new";
  std::filesystem::create_directory(path);
  EXPECT_EQ(error_of([&] { NewFolder{path}; }).code(), ErrorCode::kInvalidArgument);
  std::filesystem::remove(path);
  NewFolder folder(path);
  write_text(path, "came meanwhile");
  EXPECT_EQ(error_of([&] { folder.commit(); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_file(path), "came meanwhile");
}

TEST(NewFolder, NeedsAFolderAroundIt) {
  const TemporaryFolder around;
  EXPECT_EQ(error_of([&] { NewFolder{around.path() / "no/such"}; }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace trtmc
