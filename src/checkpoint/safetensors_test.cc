#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_of(std::string_view header, size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i)
    file += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  file += header;
  file.append(data_bytes, 'x');
  return file;
}

SafetensorsEntries parse(const std::string& file) { return parse_safetensors(as_bytes(file)); }

// Why the file is refused, or "".
std::string refusal(const std::string& file) {
  try {
    parse(file);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
    return error.what();
  }
}

std::string refusal(std::string_view header, size_t data_bytes) {
  return refusal(file_of(header, data_bytes));
}

constexpr std::string_view kTwo =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]},)"
    R"("a":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}   )";

TEST(Safetensors, NamesAreSortedAndBytesAreWhereTheHeaderSays) {
  const std::string file = file_of(kTwo, 8);
  const SafetensorsEntries entries = parse(file);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.begin()->first, "a");
  EXPECT_EQ(entries.at("a").shape, Shape());
  EXPECT_EQ(entries.at("b").shape, (Shape{2, 1}));
  EXPECT_EQ(entries.at("b").dtype, "BF16");
  EXPECT_EQ(as_text(entries.at("b").bytes).data(), file.data() + 8 + kTwo.size());
  EXPECT_EQ(as_text(entries.at("a").bytes).data(), file.data() + 8 + kTwo.size() + 4);
}

TEST(Safetensors, AFileWithoutTensorsIsSound) { EXPECT_EQ(refusal("{}", 0), ""); }

TEST(Safetensors, ATensorWithoutElementsIsSound) {
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]}})", 0), "");
}

TEST(Safetensors, AFileCutAnywhereIsRefused) {
  const std::string file = file_of(kTwo, 8);
  for (size_t size = 0; size < file.size(); ++size) EXPECT_NE(refusal(file.substr(0, size)), "");
  EXPECT_NE(refusal(file + "x"), "");
}

TEST(Safetensors, AHeaderLongerThanTheFileOrTheLimitIsRefused) {
  EXPECT_THAT(refusal(std::string("\xff\x00\x00\x00\x00\x00\x00\x00{}", 10)),
              HasSubstr("a header of 255 bytes in a file of 10 bytes"));
  EXPECT_THAT(refusal(std::string(8, '\xff')), HasSubstr("at most 100000000 are allowed"));
}

TEST(Safetensors, AHeaderThatIsNoObjectIsRefused) {
  EXPECT_THAT(refusal("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(" {}", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("{\"a\":", 0), HasSubstr("header: byte"));
  EXPECT_THAT(refusal(R"({"a":[[[[[[]]]]]]})", 0), HasSubstr("nested deeper"));
}

TEST(Safetensors, ANameThatStandsTwiceIsRefused) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                      1),
              HasSubstr("the key \"a\" stands twice"));
}

TEST(Safetensors, ATensorOutsideTheFileIsRefused) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", 4),
              HasSubstr("tensor \"a\": bytes 0 to 5 of 4 bytes of data"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}})", 4),
              HasSubstr("tensor \"a\": bytes 2 to 1"));
  EXPECT_THAT(
      refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4),
      HasSubstr("holds what is not a size"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})", 4),
              HasSubstr("holds what is not a size"));
}

TEST(Safetensors, ASizeThatIsNotShapeTimesTypeIsRefused) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"BF16","shape":[2048],"data_offsets":[0,4094]}})", 4094),
              HasSubstr("tensor \"a\": 4094 bytes, but [2048] of BF16 needs 4096"));
  // 2^62 * 2^62 elements would wrap around to 0 bytes.
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],)"
                      R"("data_offsets":[0,0]}})",
                      0),
              HasSubstr("needs what no file can hold"));
}

TEST(Safetensors, OverlapsAndHolesAreRefused) {
  const auto two = [](int second_begin) {
    return fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}},)"
                       R"("b":{{"dtype":"U8","shape":[4],"data_offsets":[{},{}]}}}})",
                       second_begin, second_begin + 4);
  };
  EXPECT_EQ(refusal(two(4), 8), "");
  EXPECT_THAT(refusal(two(3), 7),
              HasSubstr("\"b\": starts at byte 3 of the data, where 4 was expected"));
  EXPECT_THAT(refusal(two(0), 4), HasSubstr("starts at byte 0"));
  EXPECT_THAT(refusal(two(5), 9), HasSubstr("starts at byte 5"));
  EXPECT_THAT(refusal(two(4), 9), HasSubstr("9 bytes of data, but the tensors end at 8"));
}

TEST(Safetensors, MembersOfTheWrongKindAreRefused) {
  EXPECT_THAT(refusal(R"({"a":3})", 0), HasSubstr("dtype is not a string"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", 0),
              HasSubstr("shape is not an array"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,0]}})", 0),
              HasSubstr("shape holds what is not a size"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})", 0),
              HasSubstr("data_offsets are not two numbers"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"format":3}})", 0),
              HasSubstr("__metadata__ is not an object of strings"));
}

class OnDisk : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "model.safetensors";
};

TEST_F(OnDisk, TheThreeFloatTypesAreRead) {
  const std::vector<float> values = {1.5f, -2.0f, 0.25f};
  write_safetensors(path_, {make_tensor("f16", DType::kF16, {3}, values),
                            make_tensor("f32", DType::kF32, {3, 1}, values),
                            make_tensor("bf16", DType::kBF16, {1, 3}, values)});
  const SafetensorsFile file(path_);
  for (const std::string_view name : {"f32", "f16", "bf16"}) {
    const CheckpointTensor tensor = file.tensor(name);
    EXPECT_EQ(dtype_name(tensor.dtype), name);
    std::vector<float> read(3);
    read_floats({tensor.dtype, tensor.shape, tensor.bytes}, 0,
                read);  // The f32 tensor lies at an odd multiple of 2 bytes.
    EXPECT_THAT(read, ElementsAre(1.5f, -2.0f, 0.25f));
  }
}

TEST_F(OnDisk, OtherTypesAreRefusedOnlyWhenAskedFor) {
  write_text(path_, file_of(R"({"mask":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                            R"("new":{"dtype":"F8_NEXT","shape":[1],"data_offsets":[8,9]}})",
                            9));
  const SafetensorsFile file(path_);
  for (const auto& [name, dtype] : {std::pair("mask", "I64"), std::pair("new", "F8_NEXT")}) {
    try {
      file.tensor(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
      EXPECT_EQ(std::string(error.what()),
                fmt::format("model.safetensors: tensor \"{}\" is of type {}, expected BF16, F16 or "
                            "F32",
                            name, dtype));
    }
  }
}

TEST_F(OnDisk, ARefusalNamesTheFile) {
  write_text(path_, "short");
  try {
    const SafetensorsFile file(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "model.safetensors: 5 bytes, too few for a header");
  }
}

}  // namespace
}  // namespace trtmc
