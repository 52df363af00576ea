#include "tensor/packed_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace trtmc {
namespace {

using Matrix = std::vector<std::vector<float>>;

// Values that every element type holds exactly.
Matrix small_integers(int64_t rows, int64_t cols) {
  std::mt19937 random(7);
  Matrix matrix(static_cast<size_t>(rows), std::vector<float>(static_cast<size_t>(cols)));
  for (auto& row : matrix) {
    for (float& value : row) value = static_cast<float>(static_cast<int>(random() % 255) - 127);
  }
  return matrix;
}

std::vector<std::byte> pack(const PackedLayout& layout, const Matrix& matrix) {
  std::vector<std::byte> packed(layout.total_bytes(), std::byte{0xa5});
  for (size_t panel = 0; panel < static_cast<size_t>(layout.num_panels()); ++panel) {
    const size_t first = panel * 16;
    const std::vector<std::span<const float>> rows(
        matrix.begin() + static_cast<ptrdiff_t>(first),
        matrix.begin() + static_cast<ptrdiff_t>(std::min(first + 16, matrix.size())));
    pack_panel(layout, rows,
               std::span(packed).subspan(panel * layout.panel_bytes(), layout.panel_bytes()));
  }
  return packed;
}

float element(const PackedLayout& layout, std::span<const std::byte> packed, int64_t index) {
  float value = 0;
  read_floats({layout.dtype, {num_elements({layout.rows, layout.cols})}, packed}, index,
              {&value, 1});
  return value;
}

TEST(PackedLayout, F32PutsTheSixteenRowsOfAColumnSideBySide) {
  const PackedLayout layout{DType::kF32, 32, 3};
  EXPECT_EQ(layout.index(0, 0), 0);
  EXPECT_EQ(layout.index(5, 0), 5);
  EXPECT_EQ(layout.index(0, 1), 16);
  EXPECT_EQ(layout.index(15, 2), 47);
  EXPECT_EQ(layout.index(16, 0), 48);  // The second panel.
  EXPECT_EQ(layout.total_bytes(), 32U * 3 * 4);
}

TEST(PackedLayout, BF16PutsPairsOfColumnsSideBySide) {
  const PackedLayout layout{DType::kBF16, 17, 5};
  EXPECT_EQ(layout.padded_cols(), 6);
  EXPECT_EQ(layout.num_panels(), 2);
  EXPECT_EQ(layout.index(0, 1), 1);
  EXPECT_EQ(layout.index(1, 0), 2);
  EXPECT_EQ(layout.index(15, 1), 31);
  EXPECT_EQ(layout.index(0, 2), 32);
  EXPECT_EQ(layout.index(3, 4), 64 + 6);
  EXPECT_EQ(layout.index(16, 0), 16 * 6);
  EXPECT_EQ(layout.panel_bytes(), 16U * 6 * 2);
  EXPECT_EQ(layout.total_bytes(), 2U * 16 * 6 * 2);
}

struct Case {
  DType dtype;
  int64_t rows, cols;
};

class Packing : public ::testing::TestWithParam<Case> {};

TEST_P(Packing, PutsEveryElementAtItsIndexAndZeroElsewhere) {
  const PackedLayout layout{GetParam().dtype, GetParam().rows, GetParam().cols};
  const Matrix matrix = small_integers(layout.rows, layout.cols);
  const std::vector<std::byte> packed = pack(layout, matrix);
  const int64_t slots = layout.num_panels() * 16 * layout.padded_cols();
  std::vector<float> expected(static_cast<size_t>(slots), 0.0F);
  for (int64_t r = 0; r < layout.rows; ++r) {
    for (int64_t k = 0; k < layout.cols; ++k) {
      expected[static_cast<size_t>(layout.index(r, k))] =
          matrix[static_cast<size_t>(r)][static_cast<size_t>(k)];
    }
  }
  for (int64_t i = 0; i < slots; ++i) {
    ASSERT_EQ(element(layout, packed, i), expected[static_cast<size_t>(i)]) << i;
  }
}

TEST_P(Packing, UnpacksToTheSameRows) {
  const PackedLayout layout{GetParam().dtype, GetParam().rows, GetParam().cols};
  const Matrix matrix = small_integers(layout.rows, layout.cols);
  const std::vector<std::byte> packed = pack(layout, matrix);
  for (int64_t r = 0; r < layout.rows; ++r) {
    std::vector<float> row(static_cast<size_t>(layout.cols));
    unpack_row(layout, packed, r, row);
    ASSERT_EQ(row, matrix[static_cast<size_t>(r)]) << r;
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t rows : {1, 15, 16, 17, 40}) {
      for (const int64_t cols : {1, 2, 3, 255, 256, 257, 600}) cases.push_back({dtype, rows, cols});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Sizes, Packing, ::testing::ValuesIn(all_cases()), [](const auto& test) {
  return std::string(dtype_name(test.param.dtype)) + "_" + std::to_string(test.param.rows) + "x" +
         std::to_string(test.param.cols);
});

TEST(PackPanelBytes, KeepsEveryBitOfTheStoredType) {
  // All bit patterns, NaNs with their payloads among them, at odd addresses.
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const PackedLayout layout{dtype, 11, 517};
    const size_t size = element_bytes(dtype);
    std::vector<std::byte> raw(11 * 517 * size + 1);
    std::mt19937 random(3);
    for (std::byte& b : raw) b = static_cast<std::byte>(random());
    std::vector<std::span<const std::byte>> rows;
    for (size_t r = 0; r < 11; ++r) {
      rows.push_back(std::span(raw).subspan(1 + r * 517 * size, 517 * size));
    }
    std::vector<std::byte> packed(layout.panel_bytes());
    pack_panel_bytes(layout, rows, packed);
    for (int64_t r = 0; r < 11; ++r) {
      for (int64_t k = 0; k < 517; ++k) {
        const size_t at = static_cast<size_t>(layout.index(r, k)) * size;
        const std::byte* from = rows[static_cast<size_t>(r)].data() + static_cast<size_t>(k) * size;
        ASSERT_EQ(std::memcmp(packed.data() + at, from, size), 0) << r << ", " << k;
      }
    }
  }
}

}  // namespace
}  // namespace trtmc
