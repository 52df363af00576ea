#include "checkpoint/gguf_file.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/support/error_of.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kF32 = 0, kQ8_0 = 8;

std::string complaint(ErrorCode code, const std::string& file) {
  const Error error = error_of([&] { parse_gguf(as_bytes(file)); });
  EXPECT_EQ(error.code(), code) << error.what();
  return error.what();
}

std::string complaint(ErrorCode code, const std::function<void(GgufBytes&)>& fill) {
  GgufBytes file;
  fill(file);
  return complaint(code, file.bytes());
}

TEST(GgufFile, HoldsItsKeysAndTensors) {
  GgufBytes file;
  file.string("general.architecture", "llama");
  file.u32("llama.block_count", 2);
  file.f32("llama.rope.freq_base", 10000);
  file.flag("tokenizer.ggml.add_bos_token", true);
  file.strings("tokenizer.ggml.tokens", {"a", "", "b c"});
  file.integers("tokenizer.ggml.token_type", {1, -3, 4});
  file.pair("big", 10, GgufBytes::number(UINT64_MAX));
  const float values[] = {1, 2, 3, 4, 5, 6};
  file.f32_tensor("m", {3, 2}, values);
  const std::string bytes = file.bytes();
  const GgufContents contents = parse_gguf(as_bytes(bytes));
  const GgufMetadata& metadata = contents.metadata;
  EXPECT_EQ(metadata.text("general.architecture"), "llama");
  EXPECT_EQ(metadata.integer("llama.block_count", 1, 9), 2);
  EXPECT_EQ(metadata.number("llama.rope.freq_base"), 10000);
  EXPECT_EQ(metadata.find_flag("tokenizer.ggml.add_bos_token"), true);
  EXPECT_THAT(*metadata.find_texts("tokenizer.ggml.tokens"), ElementsAre("a", "", "b c"));
  EXPECT_THAT(*metadata.find_integers("tokenizer.ggml.token_type"), ElementsAre(1, -3, 4));
  EXPECT_EQ(metadata.number("big"), 0x1p64);
  EXPECT_FALSE(metadata.find_text("absent"));
  const GgufTensor& tensor = contents.tensors.at("m");
  EXPECT_THAT(tensor.shape, ElementsAre(2, 3));  // The file has a row's length first.
  EXPECT_EQ(tensor.type->name, "F32");
  EXPECT_EQ(std::memcmp(tensor.bytes.data(), values, sizeof values), 0);
}

TEST(GgufFile, ValuesOfAnotherKindAreNamed) {
  GgufBytes file;
  file.string("text", "a");
  file.u32("number", 70);
  file.string("bad", "\xFF");
  file.strings("texts", {"a", "\xC3"});
  const std::string bytes = file.bytes();
  const GgufMetadata metadata = parse_gguf(as_bytes(bytes)).metadata;
  const auto complaint_of = [](auto&& action) { return std::string(error_of(action).what()); };
  EXPECT_EQ(complaint_of([&] { metadata.integer("text", 0, 1); }),
            "key \"text\": a text, expected an integer");
  EXPECT_EQ(complaint_of([&] { metadata.integer("number", 0, 9); }),
            "key \"number\": 70, expected 0 to 9");
  EXPECT_EQ(complaint_of([&] { metadata.text("absent"); }), "key \"absent\" is missing");
  EXPECT_EQ(complaint_of([&] { metadata.text("bad"); }),
            "key \"bad\": byte 0 of a text is not UTF-8");
  EXPECT_EQ(complaint_of([&] { metadata.find_texts("texts"); }),
            "key \"texts\": byte 0 of a text is not UTF-8");
  EXPECT_EQ(complaint_of([&] { metadata.find_integers("texts"); }),
            "key \"texts\": an array of other things than integers");
}

TEST(GgufFile, AnotherFormatIsRefusedByName) {
  EXPECT_EQ(complaint(ErrorCode::kCorrupt, std::string("GGU")), "too short for a GGUF file");
  EXPECT_EQ(complaint(ErrorCode::kCorrupt, std::string("PK\x03\x04....")),
            "not a GGUF file: it does not begin with \"GGUF\"");
  EXPECT_EQ(complaint(ErrorCode::kUnsupported, [](GgufBytes& file) { file.version = 1; }),
            "version 1 of the GGUF format, expected 2 or 3");
  EXPECT_EQ(complaint(ErrorCode::kUnsupported, [](GgufBytes& file) { file.version = 0x3000000; }),
            "a big-endian GGUF file, expected a little-endian one");
}

TEST(GgufFile, CountsAndLengthsThatTheFileIsTooShortForAreRefused) {
  EXPECT_THAT(
      complaint(ErrorCode::kCorrupt, [](GgufBytes& file) { file.num_tensors = uint64_t{1} << 60; }),
      HasSubstr("1152921504606846976 tensors in a file of"));
  EXPECT_THAT(complaint(ErrorCode::kCorrupt, [](GgufBytes& file) { file.num_pairs = UINT64_MAX; }),
              HasSubstr("18446744073709551615 keys in a file of"));
  EXPECT_THAT(
      complaint(ErrorCode::kCorrupt,
                [](GgufBytes& file) { file.pair("key", 8, GgufBytes::number(UINT64_MAX)); }),
      HasSubstr("18446744073709551615 bytes expected, the file has"));
  EXPECT_THAT(
      complaint(ErrorCode::kCorrupt,
                [](GgufBytes& file) {
                  file.pair("key", 9,
                            GgufBytes::number(uint32_t{10}) + GgufBytes::number(uint64_t{1} << 61));
                }),
      HasSubstr("an array of 2305843009213693952 elements in"));
}

// The file is sparse: a text of zeros.
TEST(GgufFile, AHeaderWithoutAnEndIsRefusedSoon) {
  GgufBytes file;
  file.pair("key", 8, GgufBytes::number((uint64_t{128} << 20) + 1));
  const TemporaryFolder folder;
  write_text(folder.path() / "a.gguf", file.bytes());
  std::filesystem::resize_file(folder.path() / "a.gguf", uintmax_t{200} << 20);
  const Error error = error_of([&] { GgufFile(folder.path() / "a.gguf"); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(
      error.what(),
      HasSubstr("the header goes on for 134217729 bytes, expected at most 134217728 of it"));
}

TEST(GgufFile, AnArrayLongerThanAnyVocabularyIsNotRead) {
  GgufBytes file;
  file.pair("key", 9,
            GgufBytes::number(uint32_t{0}) + GgufBytes::number(uint64_t{4194305}) +
                std::string(4194305, '\0'));
  const std::string bytes = file.bytes();
  const GgufContents contents = parse_gguf(as_bytes(bytes));
  const Error error = error_of([&] { contents.metadata.find_integers("key"); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_STREQ(error.what(), "key \"key\": an array of 4194305, expected at most 4194304");
}

TEST(GgufFile, KeysThatBreakTheFormatAreRefused) {
  const auto refusal = [](uint32_t type, const std::string& value) {
    return complaint(ErrorCode::kCorrupt, [&](GgufBytes& file) { file.pair("key", type, value); });
  };
  EXPECT_THAT(refusal(13, "abc"), HasSubstr("value type 13, expected 0 to 12"));
  EXPECT_THAT(refusal(7, "\x02"), HasSubstr("2 is no flag, expected 0 or 1"));
  EXPECT_THAT(refusal(9, GgufBytes::number(uint32_t{9}) + GgufBytes::number(uint64_t{1})),
              HasSubstr("an array of arrays"));
  EXPECT_EQ(complaint(ErrorCode::kCorrupt,
                      [](GgufBytes& file) {
                        file.u32("twice", 1);
                        file.u32("twice", 2);
                      }),
            "key \"twice\" is there twice");
  EXPECT_THAT(complaint(ErrorCode::kCorrupt, [](GgufBytes& file) { file.u32("\xFF", 1); }),
              HasSubstr("a key's name is not UTF-8"));
  EXPECT_THAT(complaint(ErrorCode::kCorrupt, [](GgufBytes& file) { file.u32("", 1); }),
              HasSubstr("a key without a name"));
}

TEST(GgufFile, TensorsThatBreakTheFormatAreRefused) {
  const auto refusal = [](ErrorCode code, const std::vector<uint64_t>& dimensions, uint32_t type,
                          uint64_t offset) {
    return complaint(code, [&](GgufBytes& file) {
      file.header("t", dimensions, type, offset);
      file.f32_tensor("u", {8}, std::vector<float>(8));
    });
  };
  const auto corrupt = ErrorCode::kCorrupt;
  EXPECT_EQ(refusal(corrupt, {}, kF32, 0), "tensor \"t\": 0 dimensions, expected 1 to 4");
  EXPECT_EQ(refusal(corrupt, {1, 1, 1, 1, 1}, kF32, 0),
            "tensor \"t\": 5 dimensions, expected 1 to 4");
  EXPECT_EQ(refusal(corrupt, {0}, kF32, 0), "tensor \"t\": a dimension of 0");
  EXPECT_EQ(refusal(corrupt, {UINT64_MAX}, kF32, 0),
            "tensor \"t\": a dimension of 18446744073709551615");
  EXPECT_THAT(refusal(corrupt, {uint64_t{1} << 32, uint64_t{1} << 32}, kF32, 0),
              HasSubstr("more than any file holds"));
  EXPECT_THAT(refusal(corrupt, {uint64_t{1} << 62}, kF32, 0),
              HasSubstr("more than any file holds"));
  EXPECT_EQ(refusal(corrupt, {33}, kQ8_0, 0),
            "tensor \"t\": rows of 33 elements, but blocks of Q8_0 have 32");
  EXPECT_EQ(refusal(corrupt, {4}, kF32, 4),
            "tensor \"t\": begins at byte 4 of the data, expected a multiple of 32");
  EXPECT_EQ(refusal(corrupt, {4}, kF32, 64),
            "tensor \"t\": 16 bytes from byte 64 of the data on, which has 32");
  EXPECT_EQ(refusal(corrupt, {4}, kF32, uint64_t{0} - 32),
            "tensor \"t\": 16 bytes from byte 18446744073709551584 of the data on, which has 32");
  EXPECT_THAT(refusal(corrupt, {4}, kF32, 0), HasSubstr("overlaps tensor"));
  EXPECT_THAT(refusal(ErrorCode::kUnsupported, {4}, 23, 0),
              HasSubstr("tensor \"t\" is of type IQ4_XS, expected one of F32, F16, Q4_0"));
  EXPECT_EQ(complaint(corrupt,
                      [](GgufBytes& file) {
                        file.f32_tensor("t", {8}, std::vector<float>(8));
                        file.f32_tensor("t", {8}, std::vector<float>(8));
                      }),
            "tensor \"t\": is there twice");
}

TEST(GgufFile, AnAlignmentIsAPowerOfTwo) {
  const auto refusal = [](uint32_t alignment) {
    return complaint(ErrorCode::kCorrupt,
                     [&](GgufBytes& file) { file.u32("general.alignment", alignment); });
  };
  EXPECT_EQ(refusal(24), "general.alignment is 24, expected a power of two");
  EXPECT_EQ(refusal(0), "key \"general.alignment\": 0, expected 1 to 1048576");
  GgufBytes file;
  file.u32("general.alignment", 4);
  file.header("t", {1}, kF32, 4);
  std::string bytes = file.bytes();
  // The header ends on a multiple of 4 or is padded to it: 8 bytes of data are there either way.
  bytes.resize(bytes.size() + 8);
  EXPECT_EQ(parse_gguf(as_bytes(bytes)).tensors.at("t").bytes.size(), 4u);
}

// Wherever a file is cut, that is said and nothing is read beyond.
TEST(GgufFile, ACutFileIsRefused) {
  GgufBytes file;
  file.string("general.architecture", "llama");
  file.strings("tokenizer.ggml.tokens", {"a", "b"});
  file.f32_tensor("t", {8}, std::vector<float>(8));
  const std::string bytes = file.bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    complaint(ErrorCode::kCorrupt, bytes.substr(0, size));
  }
  EXPECT_NO_THROW(parse_gguf(as_bytes(bytes)));
}

}  // namespace
}  // namespace trtmc
