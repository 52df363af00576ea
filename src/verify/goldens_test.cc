#include "verify/goldens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "verify/verify.h"

namespace trtmc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kGoldens = std::filesystem::path(TRTMC_SOURCE_DIR) / "tests/golden";
const std::filesystem::path kUnpacked = std::filesystem::path(TRTMC_BINARY_DIR) / "testdata";

// One layer, hidden size 2, three tokens; the numbers are those of struct.pack("<f", …), base64.
constexpr const char* kSmall = R"({"transformers": "5.17.0", "torch": "2.11.0", "format": 1,
  "name": "small", "config": {"num_hidden_layers": 1, "hidden_size": 2, "vocab_size": 3},
  "columns": [0, 2], "hidden_columns": [1],
  "cases": [{"name": "one", "prompt_ids": [2, 1], "full_positions": [1], "hidden_positions": [],
    "hidden_column_positions": [],
    "bfloat16_kv": {"positions": [0],
      "columns": {"dtype": "f32", "shape": [1, 2], "data": "AACAPwAAQMA="},
      "noise": {"dtype": "f32", "shape": [1], "data": "AAAAPw=="}},
    "bfloat16": {"positions": [1], "argmax": [2], "continuation": [0, 1],
      "continuation_first": [[0, 2], [1, 0]],
      "continuation_logits": {"dtype": "bf16", "shape": [2, 2], "data": "QEAAQIA/AAA="},
      "logits": {"dtype": "bf16", "shape": [1, 3], "data": "gD8AQEDA"},
      "columns": {"dtype": "f32", "shape": [1, 2], "data": "AACAPwAAQMA="},
      "logsumexp": {"dtype": "f32", "shape": [1], "data": "AACAPw=="},
      "margins": {"dtype": "f32", "shape": [1], "data": "AAAAPw=="}}}]})";

std::string message_of(const std::string& text) {
  try {
    parse_golden(Json::parse(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Goldens, ArraysAreLittleEndianBase64) {
  const Golden golden = parse_golden(Json::parse(kSmall));
  ASSERT_EQ(golden.cases.size(), 1U);
  const GoldenRecord& record = golden.cases[0].bfloat16.value();
  EXPECT_THAT(record.logits.values, ElementsAre(1.0F, 2.0F, -3.0F));
  EXPECT_THAT(record.columns.row(0), ElementsAre(1.0F, -3.0F));
  EXPECT_THAT(record.margins.values, ElementsAre(0.5F));
  EXPECT_THAT(record.continuation_logits.row(0), ElementsAre(3.0F, 2.0F));
  EXPECT_THAT(record.continuation_logits.row(1), ElementsAre(1.0F, 0.0F));
  EXPECT_THAT(golden.cases[0].bfloat16_kv.value().columns.row(0), ElementsAre(1.0F, -3.0F));
  EXPECT_THAT(golden.cases[0].bfloat16_kv.value().noise.values, ElementsAre(0.5F));
  EXPECT_FALSE(golden.cases[0].float32);
}

TEST(Goldens, WhatContradictsItselfIsRefusedByName) {
  EXPECT_THAT(message_of(with(kSmall, "[1, 3]", "[1, 2]")),
              HasSubstr("cases[0].bfloat16.logits: shape [1, 2], expected [1, 3]"));
  EXPECT_THAT(message_of(with(kSmall, "gD8AQEDA", "gD8AQA==")), HasSubstr("4 bytes"));
  EXPECT_THAT(message_of(with(kSmall, "gD8AQEDA", "gD8A?EDA")), HasSubstr("not base64"));
  EXPECT_THAT(message_of(with(kSmall, "[2, 1]", "[3, 1]")), HasSubstr("prompt_ids[0]"));
  EXPECT_THAT(message_of(with(kSmall, "\"full_positions\": [1]", "\"full_positions\": [2]")),
              HasSubstr("full_positions[0]"));
  EXPECT_THAT(message_of(with(kSmall, "\"columns\": [0, 2]", "\"columns\": [2, 0]")),
              HasSubstr("does not rise"));
  EXPECT_THAT(message_of(with(kSmall, "[[0, 2], [1, 0]]", "[[0, 2]]")),
              HasSubstr("not one list a token"));
  EXPECT_THAT(message_of(with(kSmall, "[[0, 2], [1, 0]]", "[[0, 2], [1]]")),
              HasSubstr("lists of one size"));
  EXPECT_THAT(message_of(with(kSmall, "[[0, 2], [1, 0]]", "[[0, 2], [2, 1]]")),
              HasSubstr("does not begin with the continuation"));
  EXPECT_THAT(message_of(with(kSmall, "\"format\": 1", "\"format\": 2")), HasSubstr("format"));
}

TEST(Goldens, EveryCommittedOneReadsAndNamesItsVersions) {
  std::vector<std::filesystem::path> paths{kUnpacked / "tests/golden/smollm3-tiny/logits.json"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kGoldens)) {
    if (entry.path().extension() == ".zst") paths.push_back(entry.path());
  }
  int count = 0;
  for (const std::filesystem::path& path : paths) {
    const Json json = read_goldens(path);
    if (json.find("cases") == nullptr) continue;  // Another folder's kind of golden.
    EXPECT_EQ(*JsonCursor(json).at("transformers").json().string(), "5.17.0") << path;
    EXPECT_EQ(*JsonCursor(json).at("torch").json().string(), "2.11.0") << path;
    EXPECT_GT(parse_golden(json).cases.size(), 0U);
    ++count;
  }
  EXPECT_GE(count, 23);
}

TEST(Goldens, ACutOffFileIsASentence) {
  const std::filesystem::path whole = kGoldens / "smollm3-random/untied.json.zst";
  std::ifstream in(whole, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::filesystem::path cut = std::filesystem::path(testing::TempDir()) / "cut.json.zst";
  for (const size_t size : {size_t{0}, size_t{3}, size_t{100}, bytes.size() - 1}) {
    std::ofstream(cut, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(size));
    EXPECT_THROW(read_goldens(cut), Error) << size;
  }
}

TEST(Goldens, ThresholdsAreAllThereAndNoOthers) {
  const std::string good = R"({"float32": {"logits_relative_l2": 1e-4, "logits_cosine": 0.9999,
    "logsumexp_difference": 1e-3, "hidden_relative_l2": 1e-4, "greedy_mismatches": 0,
    "perplexity_relative": 1e-4}, "bfloat16": {"cosine_p5": 0.99, "relative_l2_p95": 0.05,
    "float32_error_share": 1, "argmax_agreement": 0.98, "argmax_margin": 0.1,
    "continuation_edit_distance": 0}, "bfloat16_kv": {"noise_factor": 2,
    "relative_l2": 1e-4}})";
  EXPECT_EQ(parse_thresholds(Json::parse(good)).bfloat16.argmax_agreement, 0.98);
  EXPECT_THROW(parse_thresholds(Json::parse(with(good, "cosine_p5", "cosine_p6"))), Error);
  EXPECT_THROW(parse_thresholds(Json::parse(with(good, "\"argmax_margin\": 0.1,", ""))), Error);
  EXPECT_THROW(parse_thresholds(Json::parse(with(good, "\"bfloat16_kv\"", "\"bf16\""))), Error);
}

}  // namespace
}  // namespace trtmc
