#include "hub/repository_listing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/error_of.h"

namespace trtmc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kCommit = "a07cc9a04f16550a088caea529712d1d335b0ac1";
constexpr std::string_view kSha1 = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
constexpr std::string_view kSha256 =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string file(std::string_view name, int64_t size = 7) {
  return fmt::format(R"({{"rfilename": "{}", "size": {}, "blobId": "{}"}})", name, size, kSha1);
}

std::string listing(const std::vector<std::string>& files) {
  return fmt::format(R"({{"id": "a/b", "sha": "{}", "siblings": [{}]}})", kCommit,
                     fmt::join(files, ", "));
}

std::vector<std::string> needed(const std::vector<std::string>& names) {
  std::vector<std::string> entries, chosen;
  for (const std::string& name : names) entries.push_back(file(name));
  for (const RepositoryFile& of : files_for_build(parse_listing(listing(entries)))) {
    chosen.push_back(of.name);
  }
  return chosen;
}

Error refusal(const std::string& json) {
  return error_of([&] { parse_listing(json); });
}

// As the hub answers: LFS files have their own hash besides that of their pointer.
TEST(RepositoryListing, ReadsCommitFilesAndDigests) {
  const RepositoryListing read = parse_listing(
      listing({file("config.json", 1919),
               fmt::format(R"({{"rfilename": "model.safetensors", "size": 5, "blobId": "{}",
                        "lfs": {{"sha256": "{}", "size": 5, "pointerSize": 134}}}})",
                           kSha1, kSha256)}));
  EXPECT_EQ(read.commit, kCommit);
  EXPECT_THAT(
      read.files,
      ElementsAre(
          RepositoryFile{"config.json", 1919, {FileDigest::Kind::kGitSha1, std::string(kSha1)}},
          RepositoryFile{
              "model.safetensors", 5, {FileDigest::Kind::kSha256, std::string(kSha256)}}));
}

TEST(RepositoryListing, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../config.json", "a/../../x", "/etc/passwd", "a//b", ".", "..", "a/..",
                           "a/./b", "", "a/", "x\\u0000y", "x\\ny", "\\u001b[2J"}) {
    const Error error = refusal(listing({file(name)}));
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << name;
    EXPECT_THAT(error.what(), HasSubstr("siblings[0].rfilename")) << name;
  }
}

TEST(RepositoryListing, RefusesWhatIsNoListing) {
  const std::string bad_size = fmt::format(
      R"({{"rfilename": "a", "size": 4, "lfs": {{"sha256": "{}", "size": 5}}}})", kSha256);
  for (const std::string& json :
       {std::string(), std::string("<html>"), std::string("[]"), std::string("{}"),
        std::string(R"({"sha": "main", "siblings": []})"),
        fmt::format(R"({{"sha": "{}"}})", kCommit), listing({file("a", -1)}),
        listing({file("a", int64_t{1} << 62)}), listing({file("a"), file("a")}),
        listing({R"({"rfilename": "a", "size": 1})"}),
        listing({R"({"rfilename": "a", "size": 1, "blobId": "../../x"})"}),
        listing({R"({"rfilename": "a", "size": 1e3, "blobId": "x"})"}), listing({bad_size}),
        std::string(100000, '[')}) {
    EXPECT_EQ(refusal(json).code(), ErrorCode::kCorrupt) << json.substr(0, 200);
  }
}

TEST(FilesForBuild, AreConfigurationTokenizerTemplateCardAndWeights) {
  EXPECT_THAT(
      needed({"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
              "special_tokens_map.json", "chat_template.jinja", "README.md", "model.safetensors",
              ".gitattributes", "LICENSE", "vocab.json", "onnx/model.onnx", "onnx/config.json",
              "pytorch_model.bin"}),
      testing::UnorderedElementsAre("config.json", "generation_config.json", "tokenizer.json",
                                    "tokenizer_config.json", "special_tokens_map.json",
                                    "chat_template.jinja", "README.md", "model.safetensors"));
}

TEST(FilesForBuild, TakeShardsWithTheirIndexAndNoSecondCopy) {
  EXPECT_THAT(
      needed({"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
              "model.safetensors.index.json", "consolidated.safetensors"}),
      testing::UnorderedElementsAre("config.json", "model-00001-of-00002.safetensors",
                                    "model-00002-of-00002.safetensors",
                                    "model.safetensors.index.json"));
}

TEST(FilesForBuild, ComeSmallOnesFirst) {
  const auto files = files_for_build(parse_listing(listing(
      {file("config.json", 900), file("model.safetensors", 800), file("tokenizer.json", 7)})));
  EXPECT_EQ(files.front().name, "tokenizer.json");
  EXPECT_EQ(files.back().name, "config.json");
}

TEST(FilesForBuild, RefuseARepositoryWithoutSafetensors) {
  const Error error = error_of([] { needed({"config.json", "pytorch_model.bin"}); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(error.what(),
               "no safetensors; the weights are in another format (pytorch_model.bin)");
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"a.Q4_K_M.gguf"}, {"config.json", "a.Q4_K_M.gguf", "a.bin"}}) {
    const Error gguf = error_of([&] { needed(names); });
    EXPECT_EQ(gguf.code(), ErrorCode::kUnsupported);
    EXPECT_STREQ(gguf.what(), "no safetensors; the weights are GGUFs (a.Q4_K_M.gguf)");
    EXPECT_THAT(gguf.hint(), HasSubstr("`trtmc build` takes the file"));
  }
  EXPECT_EQ(error_of([] { needed({"config.json"}); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([] { needed({"model.safetensors"}); }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace trtmc
