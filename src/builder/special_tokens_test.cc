// The special tokens of a checkpoint and what a chat template makes of them, against Transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "builder/build_plan.h"
#include "builder/text_assets.h"
#include "checkpoint/hf_directory.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"
#include "text/chat_template.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

void replace_file(const std::filesystem::path& path, const Json& content) {
  std::filesystem::remove(path);
  if (!content.is_null()) write_text(path, content.dump());
}

class SpecialTokens : public ::testing::Test {
 protected:
  SpecialTokens() { write_tiny_checkpoint(folder_.path(), {}); }

  std::map<std::string, std::string> read(const Json& config, const Json& map) const {
    replace_file(folder_.path() / "tokenizer_config.json", config);
    replace_file(folder_.path() / "special_tokens_map.json", map);
    return read_special_tokens(*open_hf_directory(folder_.path()));
  }

  TemporaryFolder folder_;
};

std::map<std::string, std::string> texts_of(const JsonCursor& object) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : object.members()) texts.emplace(name, text.string());
  return texts;
}

// Recorded by tools/make_special_tokens_goldens.py.
TEST_F(SpecialTokens, AndWhatTemplatesMakeOfThemAreThoseOfTransformers) {
  const Json golden = Json::parse(read_file(TRTMC_SOURCE_DIR "/tests/golden/special_tokens.json"));
  const JsonCursor cursor(golden);
  const std::string& source = cursor.at("template").string();
  ChatInput plain, with_kwargs;
  plain.messages = Json::parse(R"([{"role": "user", "content": "Hi"}])");
  plain.add_generation_prompt = false;
  with_kwargs = plain;
  for (const auto& [name, value] : cursor.at("kwargs").members()) {
    with_kwargs.template_kwargs.emplace_back(name, value.json());
  }
  const auto cases = cursor.at("cases").elements();
  EXPECT_EQ(cases.size(), 15U);
  for (const JsonCursor& item : cases) {
    SCOPED_TRACE(item.at("name").string());
    const auto tokens =
        read(item.at("tokenizer_config").json(), item.at("special_tokens_map").json());
    EXPECT_EQ(tokens, texts_of(item.at("special_tokens")));
    const ChatTemplate chat_template(source, tokens);
    EXPECT_EQ(chat_template.render(plain), item.at("rendered").string());
    EXPECT_EQ(chat_template.render(with_kwargs), item.at("rendered_with_kwargs").string());
  }
}

TEST_F(SpecialTokens, StandInTheManifest) {
  read(Json::parse(R"({"bos_token": "<s>", "eos_token": "<|im_end|>"})"), {});
  const BuildPlan plan = plan_build(open_hf_directory(folder_.path()), {});
  EXPECT_EQ(plan.manifest.special_tokens, (std::map<std::string, std::string>{
                                              {"bos_token", "<s>"}, {"eos_token", "<|im_end|>"}}));
}

TEST_F(SpecialTokens, ThatAreNoTextAreRefusedByName) {
  try {
    read(Json::parse(R"({"bos_token": 1})"), {});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("tokenizer_config.json: bos_token"));
  }
}

}  // namespace
}  // namespace trtmc
