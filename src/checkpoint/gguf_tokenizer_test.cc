#include "checkpoint/gguf_tokenizer.h"

#include <gmock/gmock.h>

#include <functional>

#include "base/file.h"
#include "checkpoint/gguf_file.h"
#include "tests/support/error_of.h"
#include "tests/support/gguf_bytes.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

// a, b, ab, a control token, a token of the user's, and one that pads the embedding.
void add_tokens(GgufBytes& file) {
  file.strings("tokenizer.ggml.tokens", {"a", "b", "ab", "<|x|>", "<think>", "[PAD5]"});
  file.integers("tokenizer.ggml.token_type", {1, 1, 1, 3, 4, 5});
  file.strings("tokenizer.ggml.merges", {"a b"});
}

std::optional<Json> tokenizer_of(const std::function<void(GgufBytes&)>& fill) {
  GgufBytes file;
  fill(file);
  const std::string bytes = file.bytes();
  return gguf_tokenizer(parse_gguf(as_bytes(bytes)).metadata);
}

std::string complaint(ErrorCode code, const std::function<void(GgufBytes&)>& fill) {
  const Error error = error_of([&] { tokenizer_of(fill); });
  EXPECT_EQ(error.code(), code) << error.what();
  return error.what();
}

TEST(GgufTokenizer, IsThePublishedTokenizerJson) {
  const auto json = tokenizer_of([](GgufBytes& file) {
    file.string("tokenizer.ggml.model", "gpt2");
    file.string("tokenizer.ggml.pre", "smollm");
    add_tokens(file);
  });
  // The pre-tokenizer is that of SmolLM2's file.
  EXPECT_EQ(*json, Json::parse(R"({"version": "1.0",
    "added_tokens": [
      {"id": 3, "content": "<|x|>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 4, "content": "<think>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "ignore_merges": false, "vocab": {"a": 0, "b": 1, "ab": 2},
              "merges": ["a b"]}})"));
}

TEST(GgufTokenizer, NamesItsSpecialTokens) {
  GgufBytes file;
  file.string("tokenizer.ggml.model", "gpt2");
  add_tokens(file);
  file.u32("tokenizer.ggml.bos_token_id", 3);
  file.u32("tokenizer.ggml.padding_token_id", 1);
  const std::string bytes = file.bytes();
  const auto json = gguf_tokenizer_config(parse_gguf(as_bytes(bytes)).metadata);
  const JsonCursor config(*json);
  EXPECT_EQ(config.at("bos_token").string(), "<|x|>");
  EXPECT_EQ(config.at("pad_token").string(), "b");
  EXPECT_FALSE(config.find("eos_token"));
  const auto added = config.at("added_tokens_decoder").members();
  ASSERT_EQ(added.size(), 2u);
  EXPECT_EQ(added[1].first, "4");
  EXPECT_EQ(added[1].second.at("content").string(), "<think>");
}

TEST(GgufTokenizer, AddsWhatTheKeysOrTheNameSay) {
  const auto processor_of = [](const char* pre, std::optional<bool> bos, bool eos) {
    const auto json = tokenizer_of([&](GgufBytes& file) {
      file.string("tokenizer.ggml.model", "gpt2");
      file.string("tokenizer.ggml.pre", pre);
      add_tokens(file);
      file.u32("tokenizer.ggml.bos_token_id", 3);
      file.u32("tokenizer.ggml.eos_token_id", 4);
      if (bos) file.flag("tokenizer.ggml.add_bos_token", *bos);
      if (eos) file.flag("tokenizer.ggml.add_eos_token", true);
    });
    const Json* processor = json->find("post_processor");
    return processor == nullptr ? std::string() : processor->find("single")->dump();
  };
  const std::string bos = R"({"SpecialToken":{"id":"<|x|>","type_id":0}})";
  const std::string text = R"({"Sequence":{"id":"A","type_id":0}})";
  const std::string eos = R"({"SpecialToken":{"id":"<think>","type_id":0}})";
  EXPECT_EQ(processor_of("smollm", {}, false), "");
  EXPECT_EQ(processor_of("smollm", true, false), "[" + bos + "," + text + "]");
  EXPECT_EQ(processor_of("smollm", true, true), "[" + bos + "," + text + "," + eos + "]");
  // Llama 3's tokenizer puts its token in front; Smaug's, which is otherwise the same, does not.
  EXPECT_EQ(processor_of("llama-bpe", {}, false), "[" + bos + "," + text + "]");
  EXPECT_EQ(processor_of("llama-bpe", false, false), "");
  EXPECT_EQ(processor_of("smaug-bpe", {}, false), "");
}

TEST(GgufTokenizer, AnAddedTokenBelowOthersStaysInTheVocabulary) {
  const auto json = tokenizer_of([](GgufBytes& file) {
    file.string("tokenizer.ggml.model", "gpt2");
    file.string("tokenizer.ggml.pre", "gpt-2");
    file.strings("tokenizer.ggml.tokens", {"<|x|>", "a"});
    file.integers("tokenizer.ggml.token_type", {3, 1});
    file.strings("tokenizer.ggml.merges", {});
  });
  EXPECT_EQ(json->find("model")->find("vocab")->dump(), R"({"<|x|>":0,"a":1})");
  EXPECT_EQ(json->find("added_tokens")->array()->size(), 1u);
}

TEST(GgufTokenizer, WhatIsNotReadIsNamed) {
  const auto unsupported = ErrorCode::kUnsupported;
  EXPECT_EQ(tokenizer_of([](GgufBytes&) {}), std::nullopt);
  EXPECT_EQ(tokenizer_of([](GgufBytes& file) { file.string("tokenizer.ggml.model", "none"); }),
            std::nullopt);
  EXPECT_THAT(
      complaint(unsupported, [](GgufBytes& file) { file.string("tokenizer.ggml.model", "llama"); }),
      HasSubstr("tokenizer.ggml.model is \"llama\", which is not supported"));
  EXPECT_THAT(complaint(unsupported,
                        [](GgufBytes& file) {
                          file.string("tokenizer.ggml.model", "gpt2");
                          file.string("tokenizer.ggml.pre", "falcon");
                        }),
              HasSubstr("tokenizer.ggml.pre is \"falcon\", which is not supported, expected one of "
                        "default, gpt-2, llama-bpe"));
}

TEST(GgufTokenizer, ContradictionsAreRefused) {
  const auto refusal = [](const std::function<void(GgufBytes&)>& fill) {
    return complaint(ErrorCode::kCorrupt, [&](GgufBytes& file) {
      file.string("tokenizer.ggml.model", "gpt2");
      file.string("tokenizer.ggml.pre", "gpt-2");
      fill(file);
    });
  };
  EXPECT_EQ(refusal([](GgufBytes&) {}), "key \"tokenizer.ggml.tokens\" is missing");
  EXPECT_EQ(refusal([](GgufBytes& file) { file.strings("tokenizer.ggml.tokens", {"a"}); }),
            "key \"tokenizer.ggml.merges\" is missing");
  EXPECT_EQ(refusal([](GgufBytes& file) {
              file.strings("tokenizer.ggml.tokens", {"a"});
              file.integers("tokenizer.ggml.token_type", {5});
            }),
            "tokenizer.ggml.tokens has no token that is used");
  EXPECT_EQ(refusal([](GgufBytes& file) {
              file.strings("tokenizer.ggml.tokens", {"a"});
              file.integers("tokenizer.ggml.token_type", {1, 1});
            }),
            "tokenizer.ggml.token_type has 2 entries for 1 tokens");
  EXPECT_EQ(refusal([](GgufBytes& file) {
              add_tokens(file);
              file.flag("tokenizer.ggml.add_bos_token", true);
              file.u32("tokenizer.ggml.bos_token_id", 5);
            }),
            "key \"tokenizer.ggml.bos_token_id\": 5, expected 0 to 4");
}

}  // namespace
}  // namespace trtmc
