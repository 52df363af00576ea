#include "checkpoint/ggml_type.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "base/json.h"

namespace trtmc {
namespace {

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

const GgmlType& type_called(std::string_view name) {
  for (uint32_t number = 0; number < 64; ++number) {
    const GgmlType* type = find_ggml_type(number);
    if (type != nullptr && type->name == name) return *type;
  }
  throw std::runtime_error("no such type");
}

TEST(GgmlType, EveryBlockHasTheValuesThatPyPIsGgufGivesItToTheBit) {
  const Json json = Json::parse(read_file(std::filesystem::path(TRTMC_BINARY_DIR) /
                                          "testdata/src/checkpoint/testdata/ggml_blocks.json"));
  const auto types = JsonCursor(json).at("types").members();
  ASSERT_EQ(types.size(), 11u);
  for (const auto& [name, vectors] : types) {
    const std::vector<std::byte> blocks = from_hex(vectors.at("blocks").string());
    const std::vector<std::byte> expected = from_hex(vectors.at("values").string());
    std::vector<float> values(expected.size() / sizeof(float));
    decode_blocks(type_called(name), blocks, values);
    EXPECT_EQ(std::memcmp(values.data(), expected.data(), expected.size()), 0) << name;
  }
}

TEST(GgmlType, TypesThatAreNotReadAreNamedToo) {
  EXPECT_EQ(find_ggml_type(23), nullptr);
  EXPECT_EQ(ggml_type_name(23), "IQ4_XS");
  EXPECT_EQ(ggml_type_name(14), "Q6_K");
  EXPECT_EQ(ggml_type_name(99), "99");
}

}  // namespace
}  // namespace trtmc
