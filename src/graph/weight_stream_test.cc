#include "graph/weight_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tensor/block_formats.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_bundle.h"

namespace trtmc {
namespace {

// All pieces of a weight as values of Element.
template <typename Element>
std::vector<Element> read(const Bundle& bundle, const TensorKey& key, ElementType type,
                          MatrixOrder order) {
  ThreadPool pool(2);
  std::vector<std::byte> bytes;
  WeightStream(bundle, pool).read(key, type, order, [&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  std::vector<Element> values(bytes.size() / sizeof(Element));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class WeightStreamTest : public testing::Test {
 protected:
  Bundle bundle_of(const TinyBundleOptions& options) {
    write_tiny_bundle(folder_.path() / "tiny.trtmc", options);
    return Bundle(folder_.path() / "tiny.trtmc");
  }

  TemporaryFolder folder_;
};

// 16 rows a panel: with more rows than that and a last panel that is not whole.
TEST_F(WeightStreamTest, TransposesBitForBit) {
  const Bundle bundle = bundle_of({});
  const TensorKey key{Role::kGateProj, 1};
  const Shape shape = tensor_shape(bundle.spec(), key);
  const auto rows = static_cast<size_t>(shape[0]);
  const auto cols = static_cast<size_t>(shape[1]);
  const auto straight = read<uint16_t>(bundle, key, ElementType::kBFloat16, MatrixOrder::kByRows);
  const auto turned = read<uint16_t>(bundle, key, ElementType::kBFloat16, MatrixOrder::kByColumns);
  ASSERT_EQ(straight.size(), rows * cols);
  ASSERT_EQ(turned.size(), rows * cols);
  const WeightView weight = bundle.weight(key);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t col = 0; col < cols; ++col) {
      uint16_t stored;
      const auto index =
          weight.packed().index(static_cast<int64_t>(row), static_cast<int64_t>(col));
      std::memcpy(&stored, weight.bytes.data() + 2 * index, 2);
      EXPECT_EQ(straight[row * cols + col], stored);
      EXPECT_EQ(turned[col * rows + row], stored);
    }
  }
}

TEST_F(WeightStreamTest, GivesVectorsAsTheyAre) {
  const Bundle bundle = bundle_of({});
  const TensorKey key{Role::kFinalNorm};
  const auto values = read<uint32_t>(bundle, key, ElementType::kFloat32, MatrixOrder::kByRows);
  ASSERT_EQ(values.size(), static_cast<size_t>(bundle.spec().hidden_size));
  EXPECT_EQ(std::memcmp(values.data(), bundle.weight(key).bytes.data(), 4 * values.size()), 0);
}

// All pieces of a part as values of Element.
template <typename Element>
std::vector<Element> read_part(const Bundle& bundle, const TensorKey& key, QuantizedPart part,
                               MatrixOrder order) {
  ThreadPool pool(2);
  std::vector<std::byte> bytes;
  WeightStream(bundle, pool).read_part(key, part, order, [&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  std::vector<Element> values(bytes.size() / sizeof(Element));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The parts give the values that block_formats.h defines, in either order.
TEST_F(WeightStreamTest, PartsOfAQuantisedWeightAreItsValues) {
  for (const std::string scheme : {"q8", "q6", "q4"}) {
    const Bundle bundle = bundle_of({.quantization = scheme});
    const TensorKey key{Role::kDownProj, 1};  // [24, 40]: the second block of a row has 8 columns.
    const size_t rows = 24, cols = 40, blocks = 2;
    const auto by = MatrixOrder::kByColumns;
    const auto values = read<float>(bundle, key, ElementType::kFloat32, MatrixOrder::kByRows);
    const auto codes = read_part<uint8_t>(bundle, key, QuantizedPart::kCodes, by);
    const auto scales = read_part<float>(bundle, key, QuantizedPart::kScales, by);
    const auto zeros = read_part<int8_t>(bundle, key, QuantizedPart::kZeros, by);
    ASSERT_EQ(codes.size(), scheme == "q4" ? rows * cols / 2 : rows * cols);
    ASSERT_EQ(scales.size(), rows * blocks);
    ASSERT_EQ(zeros.size(), rows * blocks);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t col = 0; col < cols; ++col) {
        const size_t at = col * rows + row;
        const size_t block = col / kBlockColumns * rows + row;
        const int number = scheme == "q4" ? kQ4Grid[codes[at / 2] >> (at % 2 * 4) & 15]
                                          : static_cast<int8_t>(codes[at]);
        const float expected = scales[block] * static_cast<float>(number - zeros[block]);
        const float value = values[row * cols + col];
        EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected)));
      }
    }
  }
}

// The bytes of a tiny bundle count up; read as bf16 some are as large as 1e38.
TEST_F(WeightStreamTest, RefusesWhatFloat16CannotHold) {
  const Bundle bundle = bundle_of({});
  const Error error = error_of([&] {
    read<uint16_t>(bundle, {Role::kQProj, 0}, ElementType::kFloat16, MatrixOrder::kByColumns);
  });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_NE(std::string(error.what()).find("layers.0.q_proj: holds "), std::string::npos);
  EXPECT_NE(std::string(error.what()).find(", and f16 ends at 65504"), std::string::npos);
}

}  // namespace
}  // namespace trtmc
