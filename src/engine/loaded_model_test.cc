#include "engine/loaded_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/fake_executor.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

constexpr int kContext = 128;  // Of tiny_spec().

class LoadedModelTest : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "x.trtmc"; }

  LoadedModel load(const TinyBundleOptions& bundle, LoadOptions options = {}) const {
    write_tiny_bundle(path(), bundle);
    options.backend = "reference";
    return {path(), options};
  }

  TemporaryFolder folder_;
};

TEST_F(LoadedModelTest, WithoutATokenizerTakesIdsOnly) {
  const LoadedModel model = load({.tokenizer = ""});
  EXPECT_FALSE(model.has_tokenizer());
  EXPECT_EQ(model.engine_model().tokenizer, nullptr);
  const Error error = error_of([&] { model.tokenizer(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr(path().string() + ": the bundle has no tokenizer"));
}

TEST_F(LoadedModelTest, WithoutAChatTemplateSaysSo) {
  const LoadedModel model = load({.tokenizer = "", .chat_template = ""});
  EXPECT_FALSE(model.has_chat_template());
  const Error error = error_of([&] { model.chat_template(); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr(path().string() + ": the bundle has no chat template"));
}

TEST_F(LoadedModelTest, RendersTheBundlesTemplate) {
  const LoadedModel model = load({.tokenizer = "", .chat_template = "<{{ messages[0] }}>"});
  ChatInput input;
  input.messages = Json::Array{"Hi"};
  EXPECT_EQ(model.chat_template().render(input), "<Hi>");
}

TEST_F(LoadedModelTest, HasTheBundlesContextUnlessAskedForAnother) {
  EXPECT_EQ(load({.tokenizer = ""}).context_length(), kContext);
  LoadOptions options;
  options.executor.context_length = 48;
  const LoadedModel model = load({.tokenizer = ""}, options);
  EXPECT_EQ(model.context_length(), 48);
  EXPECT_EQ(model.engine_model().context_length, 48);
  EXPECT_EQ(model.engine_model().vocab_size, 40);
}

TEST_F(LoadedModelTest, ATemplateThatDoesNotParseNamesTheBundle) {
  const Error error = error_of([&] { load({.tokenizer = "", .chat_template = "{{ a"}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr(path().string() + ": chat template: line 1, column "));
}

TEST_F(LoadedModelTest, TablesThatAreNoneAreCorrupt) {
  const Error error = error_of([&] { load({.tokenizer = "not really tables"}); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr(path().string()));
}

TEST_F(LoadedModelTest, ABundleOrABackendThatIsNotThereIsNamed) {
  EXPECT_EQ(error_of([&] { LoadedModel(path(), {}); }).code(), ErrorCode::kNotFound);
  write_tiny_bundle(path(), {.tokenizer = ""});
  const Error error = error_of([&] { LoadedModel(path(), {.backend = "gpu", .executor = {}}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("gpu"));
}

TEST(EngineModel, ItsLongestSequenceFitsContextAndMemory) {
  FakeExecutor executor(
      40,
      {.num_blocks = 3, .block_size = 16, .max_tokens_per_step = 8, .max_sequences_per_step = 1});
  constexpr int kPositions = 48;
  EngineModel model{.executor = &executor, .context_length = kPositions + 1};
  EXPECT_EQ(model.longest_sequence(), kPositions);
  model.context_length = kPositions - 1;
  EXPECT_EQ(model.longest_sequence(), kPositions - 1);
}

TEST(CheckIds, RefusesWhatIsNoTokenByItsName) {
  check_ids(std::vector<TokenId>{0, 39}, "ids", 40);
  for (const TokenId id : {-1, 40}) {
    const Error error = error_of([&] {
      check_ids(std::vector<TokenId>{3, id}, "--prompt-ids", 40);
    });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(std::string(error.what()),
              "--prompt-ids: " + std::to_string(id) + " is no token of a vocabulary of 40");
  }
}

}  // namespace
}  // namespace trtmc
