#include "hub/hub_id.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/error_of.h"

namespace trtmc {
namespace {

TEST(HubId, IsOwnerAndName) {
  const auto id = parse_hub_id("HuggingFaceTB/SmolLM3-3B");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->owner, "HuggingFaceTB");
  EXPECT_EQ(id->name, "SmolLM3-3B");
  EXPECT_EQ(id->str(), "HuggingFaceTB/SmolLM3-3B");
  EXPECT_EQ(parse_hub_id("gpt2")->str(), "gpt2");
}

// The cases of huggingface_hub's own test of its rules (tests/test_utils_validators.py), and paths.
TEST(HubId, RefusesWhatTheHubRefuses) {
  const std::string long_name(97, 'a');
  for (const std::string& text :
       {std::string("datasets/foo/bar"), std::string(".repo_id"), std::string("foo--bar/baz"),
        std::string("foo..bar"), std::string("foo.git"), std::string("foo@bar"), std::string("_a/"),
        std::string("/a"), std::string("../a"), std::string("a/.."), std::string("a/b/"),
        std::string("-a/b"), std::string("a/b-"), std::string("a b/c"), std::string("a/b\n"),
        std::string("a\\b/c"), std::string(""), std::string("caf\xc3\xa9/x"), long_name}) {
    EXPECT_FALSE(parse_hub_id(text)) << text;
  }
  EXPECT_TRUE(parse_hub_id(long_name.substr(1)));
}

TEST(HubSource, HasARevisionAfterTheAt) {
  EXPECT_EQ(parse_hub_source("a/b"), (HubSource{{"a", "b"}, ""}));
  EXPECT_EQ(parse_hub_source("a/b@refs/pr/3"), (HubSource{{"a", "b"}, "refs/pr/3"}));
}

TEST(HubSource, RefusesARevisionThatLeavesItsFolder) {
  for (const char* text : {"a/b@", "a/b@../x", "a/b@/x", "a/b@x/", "a/b@x//y", "a/b@.hidden",
                           "a/b@x/.lock", "a/b@x y", "a/b@x\\y", "a/b@x\ny"}) {
    const Error error = error_of([&] { parse_hub_source(text); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(std::string(error.what()).find("not the name of a revision"), std::string::npos);
  }
}

TEST(HubSource, ACommitHasFortyLowerCaseDigits) {
  EXPECT_TRUE(is_commit("a07cc9a04f16550a088caea529712d1d335b0ac1"));
  EXPECT_FALSE(is_commit("A07cc9a04f16550a088caea529712d1d335b0ac1"));
  EXPECT_FALSE(is_commit("a07cc9a04f16550a088caea529712d1d335b0ac"));
}

}  // namespace
}  // namespace trtmc
