#include "server/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/captured_log.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using std::filesystem::perms;

class ApiKeysTest : public testing::Test {
 protected:
  ApiKeys read(std::string_view text) const {
    write_text(file_, text);
    std::filesystem::permissions(file_, perms::owner_read | perms::owner_write);
    return ApiKeys(file_);
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "keys";
};

HttpRequest with(std::string name, std::string value) {
  HttpRequest request;
  request.headers.add(std::move(name), std::move(value));
  return request;
}

TEST_F(ApiKeysTest, LetInWhoHasOne) {
  const ApiKeys keys = read("# The team's\nsk-one\r\n\n  sk-two  ");
  EXPECT_TRUE(keys.let_in(with("Authorization", "Bearer sk-one")));
  EXPECT_TRUE(keys.let_in(with("authorization", "bearer  sk-two ")));
  EXPECT_TRUE(keys.let_in(with("x-api-key", "sk-two")));
}

TEST_F(ApiKeysTest, LetInWhoHasOneBesideAnotherScheme) {
  const ApiKeys keys = read("sk-one\n");
  HttpRequest request = with("Authorization", "Basic dXNlcjpwYXNz");
  EXPECT_FALSE(keys.let_in(request));
  request.headers.add("X-Api-Key", "sk-one");
  EXPECT_TRUE(keys.let_in(request));
  HttpRequest contradicting = with("Authorization", "Bearer sk-two");
  contradicting.headers.add("X-Api-Key", "sk-one");
  EXPECT_FALSE(keys.let_in(contradicting));
}

TEST_F(ApiKeysTest, LetNobodyElseIn) {
  const ApiKeys keys = read("sk-one\n# sk-three\n");
  EXPECT_FALSE(keys.let_in(HttpRequest()));
  for (const char* value : {"", "Bearer", "Bearer ", "Bearer sk-on", "Bearer sk-onex", "sk-one",
                            "Basic sk-one", "Bearer # sk-three", "Bearer SK-ONE"}) {
    EXPECT_FALSE(keys.let_in(with("Authorization", value))) << value;
  }
}

TEST_F(ApiKeysTest, LetEverybodyInWhereThereAreNone) {
  EXPECT_TRUE(ApiKeys().let_in(HttpRequest()));
}

TEST_F(ApiKeysTest, SayWhatIsWrongWithTheirFile) {
  EXPECT_EQ(error_of([&] { ApiKeys{file_}; }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { read("# none\n\n"); }).what(), file_.string() + ": no key in it");
  EXPECT_EQ(error_of([&] {
              read(
                  "good\nb\xc3\xa4"
                  "d\n");
            }).what(),
            file_.string() + ": line 2 is no key: it has more than visible ASCII characters");
  EXPECT_EQ(error_of([&] { read("two words\n"); }).code(), ErrorCode::kInvalidArgument);
}

TEST_F(ApiKeysTest, WarnOfAFileThatOthersMayRead) {
  read("sk-one\n");
  const CapturedLog log;
  ApiKeys{file_};
  EXPECT_TRUE(log.lines().empty());
  // A group is often how a service is given its keys.
  std::filesystem::permissions(file_, perms::group_read, std::filesystem::perm_options::add);
  ApiKeys{file_};
  EXPECT_TRUE(log.lines().empty());
  std::filesystem::permissions(file_, perms::others_read, std::filesystem::perm_options::add);
  ApiKeys{file_};
  EXPECT_THAT(log.lines(),
              testing::ElementsAre(file_.string() + ": other users may read the keys; chmod o-r "
                                                    "keeps them out"));
}

}  // namespace
}  // namespace trtmc
