#include "families/generation_defaults.h"

#include <gmock/gmock.h>

#include "checkpoint/hf_directory.h"
#include "tests/support/captured_log.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_checkpoint.h"

namespace trtmc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kEndOfText[] = {"<|end_of_text|>"};

class GenerationDefaultsTest : public ::testing::Test {
 protected:
  GenerationDefaults read(const TinyCheckpointOptions& options) {
    write_tiny_checkpoint(folder_.path(), options);
    return read_generation_defaults(*open_hf_directory(folder_.path()), kEndOfText);
  }

  GenerationDefaults read_generation_config(std::string_view members) {
    return read({.generation_config = Json::parse(members)});
  }

  std::string complaint(std::string_view members) {
    const Error error = error_of([&] { read_generation_config(members); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }

  TemporaryFolder folder_;
};

TEST_F(GenerationDefaultsTest, StopIdsAreTheUnionOfBothFilesAndEndOfText) {
  EXPECT_THAT(read({.config = Json::parse(R"({"eos_token_id": 5})"),
                    .generation_config = Json::parse(R"({"eos_token_id": [9, 268, 9]})")})
                  .stop_ids,
              ElementsAre(5, 9, 257, 268));
}

TEST_F(GenerationDefaultsTest, AMissingOrNullEosAddsNothing) {
  EXPECT_THAT(read({.config = Json::parse(R"({"eos_token_id": null})"),
                    .generation_config = Json::parse(R"({"eos_token_id": null})")})
                  .stop_ids,
              ElementsAre(257));
}

TEST_F(GenerationDefaultsTest, WithoutATokenizerThereIsNoEndOfText) {
  EXPECT_THAT(read({.tokenizer = false}).stop_ids, ElementsAre(268));
}

TEST_F(GenerationDefaultsTest, IdsOutsideOfTheVocabularyAreLeftOutWithAWarning) {
  const CapturedLog log;
  EXPECT_THAT(read_generation_config(R"({"eos_token_id": [-1, 320, 268]})").stop_ids,
              ElementsAre(257, 268));
  EXPECT_THAT(log.lines(),
              ElementsAre(HasSubstr("eos_token_id[0] is -1"), HasSubstr("eos_token_id[1] is 320")));
}

TEST_F(GenerationDefaultsTest, AnEosThatIsNoIdIsRefused) {
  EXPECT_EQ(complaint(R"({"eos_token_id": "<|im_end|>"})"),
            "generation_config.json: eos_token_id: a string, expected an integer");
  EXPECT_THAT(complaint(R"({"eos_token_id": [268, 1.5]})"), HasSubstr("eos_token_id[1]: a number"));
}

TEST_F(GenerationDefaultsTest, SamplingIsTheFiles) {
  const SamplingParams sampling =
      read_generation_config(R"({"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.05,
                                 "repetition_penalty": 1.1, "do_sample": true})")
          .sampling;
  EXPECT_EQ(sampling.temperature, 0.6);
  EXPECT_EQ(sampling.top_p, 0.95);
  EXPECT_EQ(sampling.top_k, 20);
  EXPECT_EQ(sampling.min_p, 0.05);
  EXPECT_EQ(sampling.repetition_penalty, 1.1);
}

TEST_F(GenerationDefaultsTest, WhatIsNotDoneIsNamedOnce) {
  const CapturedLog log;
  read_generation_config(R"({"num_beams": 4, "penalty_alpha": 0.6, "no_repeat_ngram_size": 3,
      "suppress_tokens": [1, 2], "forced_bos_token_id": 7, "max_new_tokens": 10, "novelty": "x"})");
  EXPECT_THAT(
      log.lines(),
      ElementsAre(HasSubstr("num_beams is 4,"), HasSubstr("penalty_alpha is 0.6,"),
                  HasSubstr("no_repeat_ngram_size is 3,"), HasSubstr("suppress_tokens is [1,2],"),
                  HasSubstr("forced_bos_token_id is 7,"), HasSubstr("max_new_tokens is 10,"),
                  HasSubstr("novelty is \"x\",")));
}

TEST_F(GenerationDefaultsTest, WhatChangesNothingIsNotNamed) {
  const CapturedLog log;
  read_generation_config(R"({"num_beams": 1, "penalty_alpha": null, "no_repeat_ngram_size": 0,
      "typical_p": 1.0, "suppress_tokens": [], "sequence_bias": {}, "renormalize_logits": false,
      "use_cache": true, "cache_implementation": "static", "_from_model_config": true,
      "transformers_version": "5.17.0", "bos_token_id": 1, "pad_token_id": 2})");
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST_F(GenerationDefaultsTest, TheImplicitTopKOfTransformersIsNotCopied) {
  EXPECT_EQ(read({}).sampling.top_k, 0);
}

TEST_F(GenerationDefaultsTest, NullsAndAMissingFileLeaveTheBuiltInValues) {
  EXPECT_EQ(read_generation_config(
                R"({"temperature": null, "top_p": null, "top_k": null, "do_sample": null})")
                .sampling,
            SamplingParams());
  write_tiny_checkpoint(folder_.path());
  std::filesystem::remove(folder_.path() / "generation_config.json");
  const auto defaults = read_generation_defaults(*open_hf_directory(folder_.path()), kEndOfText);
  EXPECT_EQ(defaults.sampling, SamplingParams());
  EXPECT_THAT(defaults.stop_ids, ElementsAre(257, 268));
}

TEST_F(GenerationDefaultsTest, WithoutSamplingTheTemperatureIsZero) {
  EXPECT_EQ(read_generation_config(R"({"do_sample": false})").sampling.temperature, 0);
}

TEST_F(GenerationDefaultsTest, ValuesOutOfRangeAreRefusedByName) {
  for (const auto& [members, name] :
       {std::pair(R"({"temperature": -0.5})", "temperature"),
        std::pair(R"({"top_p": -0.1})", "top_p"), std::pair(R"({"top_p": 1.5})", "top_p"),
        std::pair(R"({"top_k": -2})", "top_k"), std::pair(R"({"min_p": 2})", "min_p"),
        std::pair(R"({"repetition_penalty": 0})", "repetition_penalty"),
        std::pair(R"({"temperature": "hot"})", "temperature"),
        std::pair(R"({"do_sample": 1})", "do_sample")}) {
    const std::string text = complaint(members);
    EXPECT_THAT(text, HasSubstr("generation_config.json: ")) << members;
    EXPECT_THAT(text, HasSubstr(name)) << members;
  }
}

TEST_F(GenerationDefaultsTest, MarkersAreThereIfTheTokenizerHasThem) {
  write_tiny_checkpoint(folder_.path());
  const OutputMarkers markers = read_output_markers(*open_hf_directory(folder_.path()));
  EXPECT_EQ(markers, (OutputMarkers{"<think>", "</think>", "<tool_call>", "</tool_call>"}));
}

TEST_F(GenerationDefaultsTest, WithoutTheTokensThereAreNoMarkers) {
  write_tiny_checkpoint(folder_.path());
  write_text(folder_.path() / "tokenizer_config.json",
             R"({"added_tokens_decoder": {"1": {"content": "<think>"},
                                          "2": {"content": "<tool_call>"},
                                          "3": {"content": "</tool_call>"}}})");
  EXPECT_EQ(read_output_markers(*open_hf_directory(folder_.path())),
            (OutputMarkers{"", "", "<tool_call>", "</tool_call>"}));
  write_tiny_checkpoint(folder_.path() / "bare", {.tokenizer = false});
  EXPECT_EQ(read_output_markers(*open_hf_directory(folder_.path() / "bare")), OutputMarkers());
}

TEST_F(GenerationDefaultsTest, AddedTokensComeFromTokenizerJsonToo) {
  write_tiny_checkpoint(folder_.path());
  const auto both = read_added_tokens(*open_hf_directory(folder_.path()));
  EXPECT_EQ(both.at("<|im_end|>"), 268);
  EXPECT_EQ(both.size(), 19u);
  write_text(folder_.path() / "tokenizer_config.json", "{}");
  EXPECT_EQ(read_added_tokens(*open_hf_directory(folder_.path())), both);
  std::filesystem::remove(folder_.path() / "tokenizer_config.json");
  EXPECT_EQ(read_added_tokens(*open_hf_directory(folder_.path())), both);
}

TEST_F(GenerationDefaultsTest, DamagedTokenizerFilesAreNamed) {
  write_tiny_checkpoint(folder_.path());
  const auto read_tokens = [&](std::string_view text) {
    write_text(folder_.path() / "tokenizer_config.json", text);
    return std::string(
        error_of([&] { read_added_tokens(*open_hf_directory(folder_.path())); }).what());
  };
  EXPECT_THAT(read_tokens("{"), HasSubstr("tokenizer_config.json: byte"));
  EXPECT_EQ(read_tokens(R"({"added_tokens_decoder": {"1x": {"content": "a"}}})"),
            "tokenizer_config.json: added_tokens_decoder.1x: its key is no token id");
  EXPECT_EQ(read_tokens(R"({"added_tokens_decoder": {"1": {}}})"),
            "tokenizer_config.json: added_tokens_decoder.1: \"content\" is missing");
}

}  // namespace
}  // namespace trtmc
