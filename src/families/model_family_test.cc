#include "families/model_family.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/support/error_of.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

TEST(ModelFamily, IsFoundByArchitecture) {
  const Json config = Json::parse(R"({"architectures": ["SmolLM3ForCausalLM"]})");
  EXPECT_EQ(find_family(config).name, "smollm3");
}

TEST(ModelFamily, IsFoundByNameWhateverTheArchitecture) {
  const Json config = Json::parse(R"({"architectures": ["MyFineTune"]})");
  EXPECT_EQ(find_family(config, "smollm3").name, "smollm3");
}

TEST(ModelFamily, AnUnknownArchitectureIsRefusedNamingWhatIsSupported) {
  const Error error = error_of(
      [] { find_family(Json::parse(R"({"architectures": ["Qwen3ForCausalLM", "Other"]})")); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(error.what(), "the architecture Qwen3ForCausalLM, Other is not supported");
  EXPECT_THAT(error.hint(), HasSubstr("SmolLM3ForCausalLM (smollm3)"));
}

TEST(ModelFamily, AConfigWithoutArchitecturesIsRefused) {
  for (const std::string_view config :
       {"{}", R"({"architectures": null})", R"({"architectures": []})"}) {
    const Error error = error_of([&] { find_family(Json::parse(config)); });
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_STREQ(error.what(), "config.json names no architecture");
    EXPECT_THAT(error.hint(), HasSubstr("--family"));
  }
}

TEST(ModelFamily, AnUnknownNameIsRefusedNamingWhatIsSupported) {
  const Error error = error_of([] { find_family(Json::parse("{}"), "gpt2"); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(error.what(), "no model family is called \"gpt2\"");
  EXPECT_THAT(error.hint(), HasSubstr("smollm3"));
}

TEST(ModelFamily, NoTwoShareAnArchitectureANameOrAStrategy) {
  std::set<std::string_view> names;
  std::set<std::string_view> strategies;
  std::set<std::string_view> architectures;
  for (const ModelFamily* family : all_families()) {
    EXPECT_TRUE(names.insert(family->name).second) << family->name;
    EXPECT_TRUE(strategies.insert(family->strategy).second) << family->strategy;
    EXPECT_FALSE(family->architectures.empty()) << family->name;
    for (const std::string_view architecture : family->architectures)
      EXPECT_TRUE(architectures.insert(architecture).second) << architecture;
  }
  EXPECT_TRUE(names.contains("smollm3"));
}

}  // namespace
}  // namespace trtmc
