#include "base/new_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
  folder.fill([](const std::filesystem::path& hidden) { write_text(hidden / "a", "text"); });
  EXPECT_FALSE(exists(path));
  folder.commit();
  EXPECT_EQ(read_file(path / "a"), "text");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(around.path()), {}), 1);
}

TEST(NewFolder, LeavesNothingWithoutCommit) {
  const TemporaryFolder around;
  {
    NewFolder folder(around.path() / "new/");  // A slash at the end says the same.
    folder.fill([](const std::filesystem::path& hidden) { write_text(hidden / "a", "text"); });
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

TEST(NewFolder, LeavesAloneWhatAKilledProcessLeft) {
  const TemporaryFolder around;
  const auto stale = around.path() / (".new.partial-" + std::to_string(::getpid()));
  std::filesystem::create_directory(stale);
  write_text(stale / "a", "old");
  NewFolder folder(around.path() / "new");
  folder.fill([](const std::filesystem::path& hidden) { write_text(hidden / "b", "text"); });
  folder.commit();
  EXPECT_FALSE(exists(around.path() / "new" / "a"));
  EXPECT_EQ(read_file(around.path() / "new" / "b"), "text");
  EXPECT_EQ(read_file(stale / "a"), "old");
}

TEST(NewFolder, FailsInItsOwnName) {
  const TemporaryFolder around;
  NewFolder folder(around.path() / "new");
  const Error error = error_of([&] {
    folder.fill([](const std::filesystem::path& hidden) { MappedFile{hidden / "missing"}; });
  });
  const std::string named = (around.path() / "new" / "missing").string();
  EXPECT_EQ(std::string(error.what()).find(named + ": can't open"), 0) << error.what();
}

TEST(NewFolder, NeedsAFolderAroundIt) {
  const TemporaryFolder around;
  EXPECT_EQ(error_of([&] { NewFolder{around.path() / "no/such"}; }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace trtmc
