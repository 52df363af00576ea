#include "cli/settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"

namespace trtmc {
namespace {

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "trtmc");
    variables_["XDG_CONFIG_HOME"] = folder_.string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write_config(std::string_view text) {
    std::ofstream(folder_ / "trtmc" / "config.toml") << text;
  }
  Settings load() const {
    return Settings([this](const char* name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end()) return {};
      return found->second;
    });
  }
  std::string failure() const {
    try {
      load();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return std::string(error.what()).substr(folder_.string().size());
    }
    return "no error";
  }

  std::filesystem::path folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(SettingsTest, NothingIsSetWithoutFileAndVariables) {
  EXPECT_FALSE(load().find("threads").has_value());
}

TEST_F(SettingsTest, TheEnvironmentOutranksTheConfigFile) {
  write_config("threads = 2\nbackend = \"reference\"\n");
  variables_["TRTMC_THREADS"] = "7";
  EXPECT_EQ(load().find("threads")->text, "7");
  EXPECT_EQ(load().find("threads")->where, "TRTMC_THREADS");
  EXPECT_EQ(load().find("backend")->text, "reference");
  EXPECT_TRUE(load().find("backend")->where.ends_with("config.toml:2: backend"));
}

TEST_F(SettingsTest, AConfigFileHasCommentsAndBothQuotes) {
  write_config(
      "# a comment\n\n  kv-memory = \"8 GiB\"  # with a blank\ncpu-isa='avx2'\r\n"
      "log-file = \"a\\\\b # c\"\nverbose = true # yes\nseed = 5");
  const Settings settings = load();
  EXPECT_EQ(settings.find("kv-memory")->text, "8 GiB");
  EXPECT_EQ(settings.find("cpu-isa")->text, "avx2");
  EXPECT_EQ(settings.find("log-file")->text, "a\\b # c");
  EXPECT_EQ(settings.find("verbose")->text, "true");
  EXPECT_EQ(settings.find("seed")->text, "5");
}

TEST_F(SettingsTest, WhatIsNoKeyAndValueIsRefusedWithItsLine) {
  for (const char* line : {"threads", "threads =", "[run]", "threads = [1]", "backend = \"x",
                           "backend = 'x' y", "threads = 1 2"}) {
    write_config(std::string("seed = 1\n") + line + "\n");
    EXPECT_EQ(failure(), "/trtmc/config.toml:2: not a line of the form key = value") << line;
  }
}

TEST_F(SettingsTest, AnUnknownKeyIsRefused) {
  write_config("thread = 1\n");
  EXPECT_EQ(failure(), "/trtmc/config.toml:1: unknown key \"thread\"");
}

// Of TOML 1.0: defining a key multiple times is invalid.
TEST_F(SettingsTest, AKeyThatIsSetTwiceIsRefused) {
  write_config("threads = 1\nseed = 1\nthreads = 2\n");
  EXPECT_EQ(failure(), "/trtmc/config.toml:3: threads is set twice");
}

TEST_F(SettingsTest, ARelativeXdgFolderIsIgnoredAsTheSpecificationSays) {
  variables_["XDG_CONFIG_HOME"] = "relative";
  variables_["HOME"] = "/nowhere";
  const auto environment = [this](const char* name) -> std::optional<std::string> {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return {};
    return found->second;
  };
  EXPECT_EQ(user_folder(environment, "XDG_CONFIG_HOME", ".config"), "/nowhere/.config/trtmc");
}

}  // namespace
}  // namespace trtmc
