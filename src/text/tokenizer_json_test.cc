#include "text/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/small_tokenizer.h"
#include "text/tokenizer.h"

namespace trtmc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The small tokenizer with one member of one of its objects set.
std::string with(std::string_view object, std::string_view key, std::string_view value) {
  Json root = small_tokenizer({{"a", "b"}});
  if (object.empty()) {
    root.set(key, Json::parse(value));
  } else {
    Json inner = *root.find(object);
    inner.set(key, Json::parse(value));
    root.set(object, std::move(inner));
  }
  return root.dump();
}

Error refusal(const std::string& json) {
  return error_of([&] { compile_tokenizer(json); });
}

TEST(TokenizerJson, NamesWhatItDoesNotSupport) {
  const struct {
    const char *object, *key, *value, *named;
  } cases[] = {
      {"", "version", R"("2.0")", "version"},
      {"", "normalizer", R"({"type": "NFC"})", "normalizer NFC"},
      {"", "pre_tokenizer", "null", "ByteLevel"},
      {"", "pre_tokenizer", R"({"type": "Metaspace"})", "pre_tokenizer Metaspace"},
      {"", "pre_tokenizer", R"({"type": "Digits", "individual_digits": true})", "ByteLevel"},
      {"", "pre_tokenizer", R"({"type": "Sequence", "pretokenizers": []})", "Sequence"},
      {"", "decoder", "null", "decoder"},
      {"", "decoder", R"({"type": "Metaspace"})", "decoder Metaspace"},
      {"", "post_processor", R"({"type": "BertProcessing"})", "post_processor BertProcessing"},
      {"model", "type", R"("Unigram")", "model Unigram"},
      {"model", "byte_fallback", "true", "byte_fallback"},
      {"model", "fuse_unk", "true", "fuse_unk"},
      {"model", "dropout", "0.1", "dropout"},
      {"model", "continuing_subword_prefix", R"("##")", "continuing_subword_prefix"},
      {"model", "end_of_word_suffix", R"("</w>")", "end_of_word_suffix"},
  };
  for (const auto& c : cases) {
    const Error error = refusal(with(c.object, c.key, c.value));
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << c.key << ": " << error.what();
    EXPECT_THAT(error.what(), HasSubstr(c.named));
  }
}

TEST(TokenizerJson, RefusesAMalformedVocabularyInASentence) {
  const struct {
    const char *vocab, *says;
  } cases[] = {
      {R"([])", "an array, expected an object"},
      {R"({})", "empty"},
      {R"({"a": 0, "b": 2})", "an id below it has no token"},
      {R"({"a": 0, "b": 0})", "both have id 0"},
      {R"({"a": -1})", "expected an integer from 0"},
      {R"({"a": 99999999999999999999})", "expected an integer from 0"},
      {R"({"a": "0"})", "a string"},
  };
  for (const auto& c : cases) {
    const Error error = refusal(with("model", "vocab", c.vocab));
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << c.vocab;
    EXPECT_THAT(error.what(), HasSubstr(c.says));
  }
}

TEST(TokenizerJson, RefusesMalformedMerges) {
  for (const char* merges : {R"(["a"])", R"(["a b c"])", R"([["a"]])", R"([["a", 1]])", R"([1])",
                             R"(["a c"])", R"(["nothere b"])", R"({})"}) {
    const Error error = refusal(with("model", "merges", merges));
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << merges << ": " << error.what();
    EXPECT_THAT(error.what(), HasSubstr("merge"));
  }
}

TEST(TokenizerJson, ReadsBothFormsOfMerges) {
  EXPECT_EQ(compile_tokenizer(with("model", "merges", R"([["a", "b"]])")),
            compile_tokenizer(with("model", "merges", R"(["#version: 0.2", "a b"])")));
}

TEST(TokenizerJson, RefusesAddedTokensThatAreNotGivenTheirId) {
  const std::string flags =
      R"("single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false)";
  const auto added = [&](const std::string& tokens) {
    return refusal(with("", "added_tokens", tokens));
  };
  EXPECT_THAT(added(R"([{"id":300,"content":"<a>",)" + flags + "}]").what(),
              HasSubstr("given id 257"));
  EXPECT_THAT(added(R"([{"id":257,"content":"ab",)" + flags + "}]").what(),
              HasSubstr("given id 256"));
  EXPECT_THAT(added(R"([{"id":257,"content":"",)" + flags + "}]").what(), HasSubstr("0 bytes"));
  EXPECT_THAT(added(R"([{"id":257,"content":"x<",)" + flags + R"(},{"id":257,"content":"x<",)" +
                    flags + "}]")
                  .what(),
              HasSubstr("twice"));
}

TEST(TokenizerJson, TemplateGoesAroundTheTextWhenAsked) {
  const auto tables = compile_tokenizer(with("", "post_processor", R"({
      "type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false},
        {"type": "TemplateProcessing", "pair": [],
         "single": [{"SpecialToken": {"id": "X", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}},
                    {"SpecialToken": {"id": "Y", "type_id": 0}}],
         "special_tokens": {"X": {"id": "X", "ids": [1, 2], "tokens": ["x", "x"]},
                            "Y": {"id": "Y", "ids": [3], "tokens": ["y"]}}}]})"));
  const Tokenizer tokenizer(tables);
  EXPECT_THAT(tokenizer.encode("ab", {.add_special = true}), ElementsAre(1, 2, 256, 3));
  EXPECT_THAT(tokenizer.encode("ab"), ElementsAre(256));
}

// A file of a few kilobytes that would put a million tokens around every text.
TEST(TokenizerJson, ATemplateThatMultipliesIsRefused) {
  std::string pieces = R"({"Sequence": {"id": "A", "type_id": 0}})", ids = "1";
  for (int i = 1; i < 1000; ++i) {
    pieces += R"(, {"SpecialToken": {"id": "X", "type_id": 0}})";
    ids += ", 1";
  }
  const std::string processor = R"({"type": "TemplateProcessing", "pair": [], "single": [)" +
                                pieces + R"(], "special_tokens": {"X": {"id": "X", "ids": [)" +
                                ids + R"(], "tokens": []}}})";
  EXPECT_THROW(compile_tokenizer(with("", "post_processor", processor)), Error);
}

TEST(TokenizerJson, UnknownTokenIsIrrelevantWhereEveryByteHasASymbol) {
  EXPECT_NO_THROW(compile_tokenizer(with("model", "unk_token", R"("a")")));
  Json root = small_tokenizer();
  Json model = *root.find("model");
  model.set("vocab", Json::parse(R"({"a": 0})"));
  model.set("unk_token", "a");
  root.set("model", std::move(model));
  EXPECT_THAT(refusal(root.dump()).what(), HasSubstr("255 of the 256 bytes have no symbol"));
}

TEST(TokenizerJson, TheSameJsonGivesTheSameTables) {
  const std::string json = read_file(TRTMC_SOURCE_DIR "/models/smollm3-tiny/tokenizer.json");
  EXPECT_EQ(compile_tokenizer(json), compile_tokenizer(json));
}

std::string recompiled_differs(const std::string& json) {
  const auto tables = compile_tokenizer(json);
  const std::string again = decompile_tokenizer(tables);
  return compile_tokenizer(again) == tables ? "" : again;
}

TEST(TokenizerJson, WhatTablesAreWrittenAsCompilesToThem) {
  EXPECT_EQ(recompiled_differs(read_file(TRTMC_SOURCE_DIR "/models/smollm3-tiny/tokenizer.json")),
            "");
  EXPECT_EQ(recompiled_differs(with("model", "ignore_merges", "true")), "");
  EXPECT_EQ(recompiled_differs(with("", "post_processor", R"({"type": "TemplateProcessing",
      "pair": [], "single": [{"SpecialToken": {"id": "X", "type_id": 0}},
                             {"Sequence": {"id": "A", "type_id": 0}},
                             {"SpecialToken": {"id": "Y", "type_id": 0}}],
      "special_tokens": {"X": {"id": "X", "ids": [10, 97], "tokens": ["x", "x"]},
                         "Y": {"id": "Y", "ids": [3], "tokens": ["y"]}}})")),
            "");
  EXPECT_EQ(recompiled_differs(with("", "pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "Digits", "individual_digits": false},
      {"type": "Split", "pattern": {"String": "é "}, "behavior": "MergedWithNext", "invert": true},
      {"type": "Split", "pattern": {"Regex": "\\p{L}+"}, "behavior": "Removed", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": true, "use_regex": true}]})")),
            "");
}

TEST(TokenizerJson, WhatTablesAreWrittenAsKeepsAddedTokensApart) {
  EXPECT_EQ(recompiled_differs(with("", "added_tokens", R"([
      {"id": 256, "content": "ab", "single_word": true, "lstrip": false, "rstrip": true,
       "normalized": true, "special": false},
      {"id": 257, "content": "<a b>", "single_word": false, "lstrip": true, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 258, "content": "<a é c>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": true, "special": true}])")),
            "");
}

// A word of the vocabulary that no merges lead to is one token only where merges are ignored.
TEST(TokenizerJson, WhatTablesAreWrittenAsSaysWhetherMergesAreIgnored) {
  for (const bool ignored : {false, true}) {
    Json root = small_tokenizer({{"a", "b"}});
    Json model = *root.find("model");
    Json vocab = *model.find("vocab");
    vocab.set("xyz", 257);
    model.set("vocab", std::move(vocab));
    model.set("ignore_merges", ignored);
    root.set("model", std::move(model));
    const Json again = Json::parse(decompile_tokenizer(compile_tokenizer(root.dump())));
    EXPECT_EQ(*again.find("model")->find("ignore_merges"), Json(ignored));
    EXPECT_EQ(recompiled_differs(root.dump()), "");
  }
}

}  // namespace
}  // namespace trtmc
