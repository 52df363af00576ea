#include "hub/hub_settings.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

HubSettings settings_of(const std::map<std::string, std::string>& variables) {
  return read_hub_settings([variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return {};
    return found->second;
  });
}

// The order of huggingface_hub's constants.py.
TEST(HubSettings, TheCacheIsNamedByTheMostSpecificVariable) {
  std::map<std::string, std::string> variables{{"HOME", "/h"}};
  EXPECT_EQ(settings_of(variables).cache, "/h/.cache/huggingface/hub");
  variables["XDG_CACHE_HOME"] = "/x";
  EXPECT_EQ(settings_of(variables).cache, "/x/huggingface/hub");
  variables["HF_HOME"] = "~/hf";
  EXPECT_EQ(settings_of(variables).cache, "/h/hf/hub");
  variables["HUGGINGFACE_HUB_CACHE"] = "/old";
  EXPECT_EQ(settings_of(variables).cache, "/old");
  variables["HF_HUB_CACHE"] = "/new";
  EXPECT_EQ(settings_of(variables).cache, "/new");
}

TEST(HubSettings, WithoutAnyFolderThereIsNoCache) {
  EXPECT_EQ(error_of([] { settings_of({}); }).code(), ErrorCode::kNotFound);
}

TEST(HubSettings, TheTokenComesFromTheVariableElseTheFile) {
  const TemporaryFolder home;
  write_text(home.path() / "token", "hf_file\n");
  std::map<std::string, std::string> variables{{"HF_HOME", home.path().string()}};
  EXPECT_EQ(settings_of(variables).token, "hf_file");
  variables["HF_TOKEN"] = " hf_variable ";
  EXPECT_EQ(settings_of(variables).token, "hf_variable");
  variables["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1";
  EXPECT_EQ(settings_of(variables).token, "");
}

TEST(HubSettings, ATokenCanNotBeginAnotherHeader) {
  const Error error = error_of([] {
    settings_of({{"HOME", "/h"}, {"HF_TOKEN", "hf_a\r\nHost: evil"}});
  });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
}

TEST(HubSettings, SwitchesAreOnForTheFourWordsOfHuggingFace) {
  for (const char* word : {"1", "on", "Yes", "TRUE"}) {
    EXPECT_TRUE(settings_of({{"HOME", "/h"}, {"HF_HUB_OFFLINE", word}}).offline) << word;
  }
  EXPECT_FALSE(settings_of({{"HOME", "/h"}, {"HF_HUB_OFFLINE", "0"}}).offline);
  EXPECT_TRUE(settings_of({{"HOME", "/h"}, {"TRANSFORMERS_OFFLINE", "1"}}).offline);
  EXPECT_FALSE(settings_of({{"HOME", "/h"}, {"HF_HUB_DISABLE_SYMLINKS", "1"}}).symlinks);
}

TEST(HubSettings, AnEndpointIsAWebAddress) {
  EXPECT_EQ(settings_of({{"HOME", "/h"}, {"HF_ENDPOINT", "https://mirror.example/"}}).endpoint,
            "https://mirror.example");
  EXPECT_EQ(error_of([] {
              settings_of({{"HOME", "/h"}, {"HF_ENDPOINT", "file:///x"}});
            }).code(),
            ErrorCode::kInvalidArgument);
}

TEST(HubSettings, ATimeoutIsAWholeNumberOfSeconds) {
  EXPECT_EQ(settings_of({{"HOME", "/h"}, {"HF_HUB_DOWNLOAD_TIMEOUT", "3"}}).stall_timeout_s, 3);
  for (const char* text : {"0", "-1", "1.5", "3s", "99999999999"}) {
    const Error error = error_of([&] {
      settings_of({{"HOME", "/h"}, {"HF_HUB_DOWNLOAD_TIMEOUT", text}});
    });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace trtmc
