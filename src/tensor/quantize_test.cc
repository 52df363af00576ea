#include "tensor/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tensor/block_encoders.h"
#include "tensor/block_formats.h"

namespace trtmc {
namespace {

using Matrix = std::vector<std::vector<float>>;

std::vector<std::byte> quantize(const PackedLayout& layout, const Matrix& matrix) {
  std::vector<std::byte> packed(layout.total_bytes(), std::byte{0xa5});
  for (size_t panel = 0; panel < static_cast<size_t>(layout.num_panels()); ++panel) {
    const size_t first = panel * kBlockRows;
    const std::vector<std::span<const float>> rows(
        matrix.begin() + static_cast<ptrdiff_t>(first),
        matrix.begin() + static_cast<ptrdiff_t>(std::min(first + kBlockRows, matrix.size())));
    quantize_panel(layout, rows,
                   std::span(packed).subspan(panel * layout.panel_bytes(), layout.panel_bytes()));
  }
  return packed;
}

Matrix decode(const PackedLayout& layout, std::span<const std::byte> packed) {
  Matrix matrix(static_cast<size_t>(layout.rows),
                std::vector<float>(static_cast<size_t>(layout.cols)));
  for (int64_t row = 0; row < layout.rows; ++row) {
    unpack_row(layout, packed, row, matrix[static_cast<size_t>(row)]);
  }
  return matrix;
}

Matrix decoded(DType dtype, const Matrix& matrix) {
  const PackedLayout layout{dtype, static_cast<int64_t>(matrix.size()),
                            static_cast<int64_t>(matrix[0].size())};
  return decode(layout, quantize(layout, matrix));
}

Matrix normal(size_t rows, size_t cols, float deviation, unsigned seed = 1) {
  std::mt19937 random(seed);
  Matrix matrix(rows, std::vector<float>(cols));
  for (auto& row : matrix) {
    // Twelve uniform numbers: the library's own normal_distribution is another one elsewhere.
    for (float& value : row) {
      float sum = -6;
      for (int i = 0; i < 12; ++i) sum += static_cast<float>(random() >> 8) * 0x1p-24F;
      value = sum * deviation;
    }
  }
  return matrix;
}

template <typename Group>
Group first_group(std::span<const std::byte> packed) {
  Group group;
  std::memcpy(&group, packed.data(), sizeof(group));
  return group;
}

// The weighted squared error that the searches make small, in double: tensor/block_encoders.h.
double weighted_error(std::span<const float> x, std::span<const float> y) {
  double squares = 0;
  for (const float value : x) squares += double{value} * value;
  const double floor = 4 * squares / static_cast<double>(x.size());
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double off = double{y[i]} - x[i];
    error += (double{x[i]} * x[i] + floor) * off * off;
  }
  return error;
}

TEST(Quantize, Q8ScalesByTheLargestMagnitude) {
  // 127 / 127 = 1; 0.5 and 1.5 lie between two codes and go to the even one.
  const PackedLayout layout{DType::kQ8, 1, 6};
  const auto packed = quantize(layout, {{-127, 0.5F, 1.5F, 3, -2.6F, 100}});
  const auto group = first_group<Q8Group>(packed);
  EXPECT_EQ(group.scales[0][0], 0x3c00);  // 1.0
  EXPECT_THAT(std::vector<int>(group.codes[0][0], group.codes[0][0] + 4),
              ::testing::ElementsAre(1, 128, 130, 131));
  EXPECT_THAT(std::vector<int>(group.codes[1][0], group.codes[1][0] + 4),
              ::testing::ElementsAre(125, 228, 128, 128));
  EXPECT_EQ(decode(layout, packed)[0], (std::vector<float>{-127, 0, 2, 3, -3, 100}));
}

TEST(Quantize, Q8HasAScaleForEachRowAndBlock) {
  Matrix matrix(3, std::vector<float>(70, 0.0F));
  matrix[0][31] = 127;
  matrix[0][32] = 254;
  matrix[2][69] = -63.5F;
  const PackedLayout layout{DType::kQ8, 3, 70};
  const auto packed = quantize(layout, matrix);
  const auto group = first_group<Q8Group>(packed);
  EXPECT_EQ(group.scales[0][0], 0x3c00);
  EXPECT_EQ(group.scales[1][0], 0x4000);  // 2.0
  EXPECT_EQ(group.scales[0][2], 0);
  EXPECT_EQ(decode(layout, packed), matrix);
}

TEST(Quantize, Q8IsWithinHalfAScaleOfEveryValue) {
  const Matrix matrix = normal(33, 97, 0.02F);
  const Matrix back = decoded(DType::kQ8, matrix);
  for (size_t row = 0; row < matrix.size(); ++row) {
    for (size_t first = 0; first < 97; first += 32) {
      float largest = 0;
      const size_t last = std::min<size_t>(97, first + 32);
      for (size_t i = first; i < last; ++i) largest = std::max(largest, std::fabs(matrix[row][i]));
      // Half a step; the scale's rounding to 11 bits adds 127 / 2048 of one to the largest, and
      // below f16's normal numbers 127 times half of the least one.
      for (size_t i = first; i < last; ++i) {
        EXPECT_NEAR(back[row][i], matrix[row][i],
                    largest / 127 * (0.5F + 0.0625F) + 127 * 0x1p-25F);
      }
    }
  }
}

TEST(Quantize, Q4TakesPointsOfTheGridAsTheyAre) {
  // Every point of the grid moved by 6, times 2^-10: a block that q4 holds exactly.
  Matrix matrix(1, std::vector<float>(32));
  for (size_t i = 0; i < 32; ++i) {
    matrix[0][i] = static_cast<float>(kQ4Grid[i % 16] + 6) * 0x1p-10F;
  }
  const PackedLayout layout{DType::kQ4, 1, 32};
  const auto packed = quantize(layout, matrix);
  const auto group = first_group<Q4Group>(packed);
  EXPECT_EQ(group.scales[0][0], 0x1400 | (6 / kShiftStep + 8));
  for (int i = 0; i < 32; ++i) EXPECT_EQ(group.codes[i / 4][0][i % 4] & 15, i % 16);
  EXPECT_EQ(decode(layout, packed), matrix);
}

TEST(Quantize, Q4TurnsTheGridRoundForALongPositiveEnd) {
  Matrix matrix(1, std::vector<float>(32));
  for (size_t i = 0; i < 32; ++i) matrix[0][i] = static_cast<float>(kQ4Grid[i % 16]) * -0x1p-10F;
  EXPECT_EQ(decoded(DType::kQ4, matrix), matrix);
}

TEST(Quantize, Q6PutsTheFourthQuadIntoTheBitsAboveTheOthers) {
  // Codes 63, 40, 22, 11 and so on less 32, times 2^-6, which q6 holds exactly. The scale is 1/64,
  // and the shift 0 is stored as 8.
  const int codes[16] = {63, 40, 22, 11, 0, 1, 2, 3, 60, 50, 30, 20, 39, 54, 32, 5};
  Matrix matrix(1, std::vector<float>(32));
  for (size_t i = 0; i < 32; ++i) {
    matrix[0][i] = static_cast<float>(codes[i % 16] - 32) * 0x1p-6F;
  }
  const PackedLayout layout{DType::kQ6, 1, 32};
  const auto packed = quantize(layout, matrix);
  const auto group = first_group<Q6Group>(packed);
  EXPECT_EQ(group.scales[0][0], 0x2400 | 8);
  for (const auto& lines : group.codes[0]) {
    // 39 is 10 01 11, 54 is 11 01 10, 32 is 10 00 00, 5 is 00 01 01.
    EXPECT_THAT(std::vector<int>(lines[0][0], lines[0][0] + 4),
                ::testing::ElementsAre(63 + 128, 40 + 192, 22 + 128, 11));
    EXPECT_THAT(std::vector<int>(lines[1][0], lines[1][0] + 4),
                ::testing::ElementsAre(0 + 64, 1 + 64, 2, 3 + 64));
    EXPECT_THAT(std::vector<int>(lines[2][0], lines[2][0] + 4),
                ::testing::ElementsAre(60 + 192, 50 + 128, 30, 20 + 64));
  }
  EXPECT_EQ(decode(layout, packed), matrix);
}

TEST(Quantize, Q6ShiftsItsCodesToWhereTheWeightsAre) {
  // The codes 0, 2 to 60, and 63, whose points a shift of -14 and one of 14 moves.
  for (const int lowest : {-46, -18}) {
    Matrix matrix(1, std::vector<float>(32));
    for (size_t i = 0; i < 32; ++i) {
      const int code = i < 31 ? 2 * static_cast<int>(i) : 63;
      matrix[0][i] = static_cast<float>(lowest + code) * 0x1p-8F;
    }
    EXPECT_EQ(decoded(DType::kQ6, matrix), matrix) << lowest;
  }
}

// The least error of all storable scales of a size within [least, most] and of all shifts, with the
// nearest of the points to each value.
double least_error(std::span<const float> x, std::span<const int> points, float least, float most) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<float> y(x.size());
  for (unsigned bits = 0; bits < 0x7c00; bits += 1 << kShiftBits) {
    const float magnitude = f16_to_float(static_cast<uint16_t>(bits));
    if (magnitude < least || magnitude > most) continue;
    for (int shift = 0; shift < 2 << kShiftBits; ++shift) {
      const float scale = shift % 2 == 0 ? magnitude : -magnitude;
      const int moved = (shift / 2 - (1 << (kShiftBits - 1))) * kShiftStep;
      for (size_t i = 0; i < x.size(); ++i) {
        float nearest = std::numeric_limits<float>::infinity();
        for (const int point : points) {
          const float value = scale * static_cast<float>(point + moved);
          if (std::fabs(value - x[i]) < std::fabs(nearest - x[i])) nearest = value;
        }
        y[i] = nearest;
      }
      best = std::min(best, weighted_error(x, y));
    }
  }
  return best;
}

// The sum of errors of a few blocks beside the least there is.
double share_of_least_error(DType dtype, std::span<const int> points, float span_least,
                            float span_most) {
  const Matrix matrix = normal(8, 32, 0.02F, 5);
  const Matrix back = decoded(dtype, matrix);
  double ours = 0, best = 0;
  for (size_t row = 0; row < matrix.size(); ++row) {
    const auto [low, high] = std::minmax_element(matrix[row].begin(), matrix[row].end());
    const double error = weighted_error(matrix[row], back[row]);
    const double least =
        least_error(matrix[row], points, (*high - *low) / span_most, (*high - *low) / span_least);
    EXPECT_GE(error, least * (1 - 1e-4)) << row;  // Else the search here misses something.
    ours += error;
    best += least;
  }
  return ours / best;
}

// The grid spans 240, the codes of q6 63; twice that is wide enough for any that is good.
TEST(Quantize, Q4IsNearTheBestOfAllScalesAndShifts) {
  const std::vector<int> points(std::begin(kQ4Grid), std::end(kQ4Grid));
  EXPECT_LT(share_of_least_error(DType::kQ4, points, 160, 340), 1.15);
}

TEST(Quantize, Q6IsNearTheBestOfAllScalesAndShifts) {
  std::vector<int> points;
  for (int code = 0; code <= kQ6MostCode; ++code) points.push_back(code - kQ6Zero);
  EXPECT_LT(share_of_least_error(DType::kQ6, points, 50, 90), 1.15);
}

struct OddShape {
  const char* name;
  size_t rows, cols;
};

class QuantizeOddShape : public ::testing::TestWithParam<OddShape> {};

TEST_P(QuantizeOddShape, EveryWeightDecodesNearItselfAndNothingElseMatters) {
  const Matrix matrix = normal(GetParam().rows, GetParam().cols, 0.02F);
  const std::pair<DType, double> bounds[] = {
      {DType::kQ8, 1e-4}, {DType::kQ6, 1e-3}, {DType::kQ4, 1e-2}};
  for (const auto& [dtype, bound] : bounds) {
    const Matrix back = decoded(dtype, matrix);
    double error = 0, squares = 0;
    for (size_t row = 0; row < matrix.size(); ++row) {
      for (size_t i = 0; i < matrix[row].size(); ++i) {
        const double off = double{back[row][i]} - matrix[row][i];
        error += off * off;
        squares += double{matrix[row][i]} * matrix[row][i];
      }
    }
    EXPECT_LT(error, bound * squares) << dtype_name(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, QuantizeOddShape,
                         ::testing::Values(OddShape{"one", 1, 1}, OddShape{"a_row", 1, 64},
                                           OddShape{"a_column", 17, 1}, OddShape{"odd", 31, 33},
                                           OddShape{"half_a_group", 16, 96},
                                           OddShape{"groups", 48, 128}),
                         [](const auto& test) { return test.param.name; });

class QuantizeTo : public ::testing::TestWithParam<DType> {};

TEST_P(QuantizeTo, ZerosAreExact) {
  const PackedLayout layout{GetParam(), 5, 40};
  const Matrix zeros(5, std::vector<float>(40, -0.0F));
  const auto back = decode(layout, quantize(layout, zeros));
  for (const auto& row : back) {
    for (const float value : row) EXPECT_EQ(std::bit_cast<uint32_t>(value), 0U);
  }
}

TEST_P(QuantizeTo, ValuesBelowEveryScaleBecomeZero) {
  const Matrix tiny(2, std::vector<float>(32, 1e-9F));
  EXPECT_EQ(decoded(GetParam(), tiny), Matrix(2, std::vector<float>(32, 0.0F)));
}

TEST_P(QuantizeTo, HoldsTheLargestWeights) {
  Matrix matrix(1, std::vector<float>(32, 65504));
  matrix[0][3] = -65504;
  const Matrix back = decoded(GetParam(), matrix);
  for (const float value : back[0]) {
    EXPECT_NEAR(std::fabs(value), 65504, 65504 * 0.02);
  }
}

// Of rows that a panel lacks too, whatever lay in `out`.
TEST_P(QuantizeTo, TheSameWeightsGiveTheSameBytes) {
  const PackedLayout layout{GetParam(), 19, 45};
  const Matrix matrix = normal(19, 45, 1.0F);
  EXPECT_EQ(quantize(layout, matrix), quantize(layout, matrix));
}

TEST_P(QuantizeTo, ARowDoesNotDependOnItsNeighbours) {
  Matrix matrix = normal(16, 64, 0.02F);
  const Matrix back = decoded(GetParam(), matrix);
  EXPECT_EQ(decoded(GetParam(), {matrix[5]})[0], back[5]);
}

INSTANTIATE_TEST_SUITE_P(Types, QuantizeTo, ::testing::Values(DType::kQ8, DType::kQ6, DType::kQ4),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

void expect_same_bits(BlockSearch search, BlockSearch other, const WeightBlock& block) {
  BlockEncoding expected{}, encoding{};
  search(block, expected);
  other(block, encoding);
  EXPECT_EQ(std::memcmp(&expected, &encoding, sizeof(expected)), 0);
}

std::vector<uint8_t> q8_codes(const BlockEncoders& encoders, const WeightBlock& block) {
  float scales[kBlockRows];
  encoders.largest(block, scales);
  for (float& scale : scales) scale /= 130;  // So that the largest lie beyond the last code.
  uint8_t codes[kQuadsPerBlock][kBlockRows][kQuadColumns];
  encoders.q8_codes(block, scales, codes);
  return {&codes[0][0][0], &codes[0][0][0] + sizeof(codes)};
}

TEST(Quantize, EveryEncoderGivesTheSameBits) {
  for (const float deviation : {3e-5F, 0.02F, 9000.0F}) {
    const Matrix matrix = normal(kBlockRows, kBlockColumns, deviation);
    for (const int columns : {kBlockColumns, 5}) {
      WeightBlock block{};
      block.columns = columns;
      for (int row = 0; row < kBlockRows; ++row) {
        for (int i = 0; i < columns; ++i) {
          block.values[i][row] = matrix[static_cast<size_t>(row)][static_cast<size_t>(i)];
        }
      }
      const BlockEncoders& generic = generic::block_encoders();
      for (int i = 0; const BlockEncoders* encoders = runnable_encoders(i); ++i) {
        SCOPED_TRACE(encoders->isa);
        expect_same_bits(generic.q4, encoders->q4, block);
        expect_same_bits(generic.q6, encoders->q6, block);
        EXPECT_EQ(q8_codes(generic, block), q8_codes(*encoders, block));
      }
    }
  }
}

TEST(Quantize, EveryEncoderPutsRowsSideBySide) {
  Matrix matrix(kBlockRows, std::vector<float>(kBlockColumns + 3));
  const float* rows[kBlockRows];
  for (int row = 0; row < kBlockRows; ++row) {
    rows[row] = matrix[static_cast<size_t>(row)].data();
    for (int i = 0; i < kBlockColumns + 3; ++i) {
      matrix[static_cast<size_t>(row)][static_cast<size_t>(i)] = static_cast<float>(100 * row + i);
    }
  }
  for (int i = 0; const BlockEncoders* encoders = runnable_encoders(i); ++i) {
    SCOPED_TRACE(encoders->isa);
    WeightBlock block{};
    encoders->gather(rows, 3, block);
    EXPECT_EQ(block.columns, kBlockColumns);
    for (int column = 0; column < kBlockColumns; ++column) {
      for (int row = 0; row < kBlockRows; ++row) {
        ASSERT_EQ(block.values[column][row], static_cast<float>(100 * row + column + 3));
      }
    }
  }
}

TEST(Quantize, EveryEncoderSeesTheOneValueThatIsBeyond) {
  constexpr int64_t kCount = 37;  // Whole registers and a rest.
  for (int i = 0; const BlockEncoders* encoders = runnable_encoders(i); ++i) {
    SCOPED_TRACE(encoders->isa);
    std::vector<float> values(kCount, -2.0F);
    EXPECT_TRUE(encoders->are_within(values.data(), kCount, 2));
    for (float& value : values) {
      for (const float beyond :
           {std::nextafter(2.0F, 3.0F), -3.0F, -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN()}) {
        value = beyond;
        EXPECT_FALSE(encoders->are_within(values.data(), kCount, 2)) << &value - values.data();
      }
      value = -2.0F;
    }
  }
}

TEST(Quantize, SaysWhatQuantisedTypesCanHold) {
  EXPECT_TRUE(is_quantizable(std::vector<float>{0, -65504, 65504, 1e-40F}));
  for (const float value : {65536.0F, -65536.0F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(is_quantizable(std::vector<float>{0, value, 0})) << value;
  }
}

}  // namespace
}  // namespace trtmc
