// Products of quantised weights with every instruction set that this machine has: the same bits as
// a scalar model of what quantized.cc says, and near the product of the decoded weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/kernels/dispatch.h"
#include "tensor/block_formats.h"
#include "tensor/packed_layout.h"

namespace trtmc::cpu {
namespace {

constexpr DType kTypes[] = {DType::kQ8, DType::kQ6, DType::kQ4};

// W [rows, cols] of any bytes as codes, and scales of both signs.
struct Weights {
  Weights(DType dtype, int64_t rows, int64_t cols) : layout{dtype, rows, cols} {
    std::mt19937 random(1);
    packed.resize(layout.total_bytes());
    for (std::byte& byte : packed) byte = static_cast<std::byte>(random());
    std::normal_distribution<float> normal(0, 0.01F);
    for (size_t at = 0; at < packed.size(); at += layout.group_bytes()) {
      for (size_t i = 0; i < 2 * kBlockRows; ++i) {
        auto bits = float_to_f16(normal(random));
        if (dtype != DType::kQ8) {
          bits = static_cast<uint16_t>(shifted_scale_bits(bits) | (random() & kShiftMask));
        }
        std::memcpy(packed.data() + at + 2 * i, &bits, 2);
      }
    }
  }

  PackedLayout layout;
  std::vector<std::byte> packed;
};

// Rows of `width` floats, filled up with zeros to a multiple of 16; each has a size of its own.
struct Tokens {
  Tokens(int num_tokens, int64_t num_cols)
      : count(num_tokens), cols(num_cols), width(round_up(num_cols, 16)) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    data.resize(static_cast<size_t>(count * width));
    for (int t = 0; t < count; ++t) {
      for (int64_t k = 0; k < cols; ++k) row(t)[k] = std::ldexp(normal(random), t % 7 - 3);
    }
  }
  float* row(int t) { return data.data() + t * width; }
  const float* row(int t) const { return data.data() + t * width; }

  int count;
  int64_t cols;
  int64_t width;
  std::vector<float> data;
};

// y: [tokens, padded rows of W], by tiles as the executor does it; what is there is added to.
// rest: null, or where the tokens' goes.
void multiply_onto(const KernelTable& kernels, const Weights& weights, const Tokens& tokens,
                   Tokens* rest, bool adds, std::vector<float>& y) {
  const PackedLayout& layout = weights.layout;
  const int tile = kernels.tile_tokens;
  const int64_t width = quantized_width(layout.padded_cols());
  std::vector<float> bytes(static_cast<size_t>(round_up(tokens.count, tile) * width), NAN);
  for (int t = 0; t < tokens.count; t += tile) {
    kernels.quantize_tokens(tokens.row(t), std::min(tile, tokens.count - t), tokens.width,
                            layout.padded_cols(), bytes.data() + t * width,
                            rest == nullptr ? nullptr : rest->row(t));
  }
  const MatmulArgs args{.panels = weights.packed.data(),
                        .panel_bytes = static_cast<int64_t>(layout.panel_bytes()),
                        .num_panels = static_cast<int>(layout.num_panels()),
                        .k = layout.padded_cols(),
                        .x = bytes.data(),
                        .x_width = width,
                        .num_tokens = tokens.count,
                        .y = y.data(),
                        .y_stride = layout.num_panels() * kPanelRows,
                        .adds = adds};
  matmul_of(kernels, layout.dtype)(args);
}

std::vector<float> multiply(const KernelTable& kernels, const Weights& weights,
                            const Tokens& tokens) {
  const int64_t stride = weights.layout.num_panels() * kPanelRows;
  std::vector<float> y(static_cast<size_t>(tokens.count * stride), NAN);
  multiply_onto(kernels, weights, tokens, nullptr, false, y);
  return y;
}

// The weights of one row in one block: whole numbers and their scale.
struct Block {
  int values[kBlockColumns];
  float scale;
};

// Of six bits: of the first three of four quads as they lie, of the fourth in what those leave.
int code_of(const Q6Group& group, size_t half, size_t quad, size_t row, size_t column) {
  const auto& lines = group.codes[half][quad / 4];
  if (quad % 4 < 3) return lines[quad % 4][row][column] % 64;
  return lines[0][row][column] / 64 * 16 + lines[1][row][column] / 64 * 4 +
         lines[2][row][column] / 64;
}

template <typename Group>
Group group_at(const std::byte* from) {
  Group group;
  std::memcpy(&group, from, sizeof(group));
  return group;
}

Block block_of(const Weights& weights, int64_t row, int64_t block) {
  const std::byte* from = weights.packed.data() +
                          static_cast<size_t>(row / kBlockRows) * weights.layout.panel_bytes() +
                          static_cast<size_t>(block / 2) * weights.layout.group_bytes();
  const auto r = static_cast<size_t>(row % kBlockRows);
  const auto half = static_cast<size_t>(block % 2);
  uint16_t bits = 0;  // Scales come first in every format.
  std::memcpy(&bits, from + 2 * (half * kBlockRows + r), sizeof(bits));
  Block result{};
  for (size_t k = 0; k < kBlockColumns; ++k) {
    const size_t quad = k / kQuadColumns, column = k % kQuadColumns;
    if (weights.layout.dtype == DType::kQ8) {
      const auto group = group_at<Q8Group>(from);
      result.scale = f16_to_float(bits);
      result.values[k] = group.codes[half * kQuadsPerBlock + quad][r][column] - 128;
    } else if (weights.layout.dtype == DType::kQ6) {
      result.scale = f16_to_float(shifted_scale_bits(bits));
      result.values[k] =
          code_of(group_at<Q6Group>(from), half, quad, r, column) - 32 + scale_shift(bits);
    } else {
      const int codes = group_at<Q4Group>(from).codes[quad][r][column];
      result.scale = f16_to_float(shifted_scale_bits(bits));
      result.values[k] = kQ4Grid[half == 0 ? codes & 15 : codes >> 4] + scale_shift(bits);
    }
  }
  return result;
}

float largest_of(const float* x, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

// One value of y, step by step as quantized.cc says, on top of what is there.
float model(const Weights& weights, int64_t row, const float* x, int64_t width, float y = 0) {
  for (int64_t first = 0; first < width; first += kBlockColumns) {
    const int64_t count = std::min<int64_t>(kBlockColumns, width - first);
    const float largest = largest_of(x + first, count);
    const float inverse = largest == 0 ? 0 : 127.0F / largest;
    const Block block = block_of(weights, row, first / kBlockColumns);
    int dot = 0;
    for (int64_t k = 0; k < count; ++k) {
      const float scaled = x[first + k] * inverse;
      dot += block.values[k] * static_cast<int>(std::nearbyint(scaled));
    }
    const float times = static_cast<float>(dot) * (largest / 127.0F);
    y = std::fma(block.scale, times, y);
  }
  return y;
}

class Quantized : public testing::TestWithParam<const KernelTable*> {
 protected:
  void expect_the_models_bits(DType dtype, int64_t rows, int64_t cols, int num_tokens) const {
    const Weights weights(dtype, rows, cols);
    const Tokens tokens(num_tokens, cols);
    const std::vector<float> y = multiply(*GetParam(), weights, tokens);
    const int64_t stride = weights.layout.num_panels() * kPanelRows;
    for (int t = 0; t < num_tokens; ++t) {
      for (int64_t r = 0; r < stride; ++r) {
        ASSERT_EQ(y[static_cast<size_t>(t * stride + r)],
                  model(weights, r, tokens.row(t), tokens.width))
            << dtype_name(dtype) << " [" << rows << ", " << cols << "] token " << t << " row " << r;
      }
    }
  }
};

TEST_P(Quantized, GivesTheBitsOfTheModelForAnyNumberOfTokens) {
  for (const DType dtype : kTypes) {
    for (const int tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 24, 27}) {
      expect_the_models_bits(dtype, 23, 130, tokens);
    }
  }
}

TEST_P(Quantized, GivesTheBitsOfTheModelForAnyShape) {
  for (const DType dtype : kTypes) {
    for (const int64_t cols : {1, 31, 32, 33, 63, 64, 65, 1000, 2047, 2049, 4200}) {
      expect_the_models_bits(dtype, 17, cols, 1);
      expect_the_models_bits(dtype, 17, cols, 14);
    }
    for (const int64_t rows : {1, 16, 31, 48, 63, 80, 130}) {
      expect_the_models_bits(dtype, rows, 70, 1);
      expect_the_models_bits(dtype, rows, 70, 14);
    }
  }
}

// The largest sums there are: all codes at one end, all activations at an end.
TEST_P(Quantized, NeverSaturates) {
  for (const DType dtype : kTypes) {
    for (const int code : {0, 255}) {
      for (const float sign : {1.0F, -1.0F}) {
        Weights weights(dtype, 16, 64);
        const size_t scales = sizeof(Q8Group::scales);
        std::fill(weights.packed.begin() + scales, weights.packed.end(),
                  static_cast<std::byte>(code));
        Tokens tokens(3, 64);
        std::ranges::fill(tokens.data, sign);
        const std::vector<float> y = multiply(*GetParam(), weights, tokens);
        for (int64_t r = 0; r < 16; ++r) {
          EXPECT_EQ(y[static_cast<size_t>(r)], model(weights, r, tokens.row(0), tokens.width));
        }
      }
    }
  }
}

// x is what the bytes say and their rest; so with both, an activation is off by at most half a step
// of its rest, which is at most half a step of 127 itself.
TEST_P(Quantized, TheRestAddsWhatTheBytesLeave) {
  for (const DType dtype : kTypes) {
    for (const int64_t cols : {1, 40, 70, 1000}) {
      const Weights weights(dtype, 40, cols);
      const Tokens tokens(14, cols);
      Tokens rest(tokens.count, cols);
      std::vector<float> y(static_cast<size_t>(tokens.count * 48));
      multiply_onto(*GetParam(), weights, tokens, &rest, false, y);
      const std::vector<float> first = y;
      multiply_onto(*GetParam(), weights, rest, nullptr, true, y);
      for (int t = 0; t < tokens.count; ++t) {
        const float* x = tokens.row(t);
        for (int64_t k = 0; k < tokens.width; ++k) {
          const int64_t block = k / kBlockColumns * kBlockColumns;
          const float largest =
              largest_of(x + block, std::min<int64_t>(kBlockColumns, tokens.width - block));
          const float scale = largest / 127.0F;
          const float code = std::nearbyint(largest == 0 ? 0 : x[k] * (127.0F / largest));
          ASSERT_EQ(rest.row(t)[k], x[k] - scale * code) << "token " << t << " column " << k;
          ASSERT_LE(std::abs(rest.row(t)[k]), scale * 0.5001F);
        }
        for (int64_t r = 0; r < 48; ++r) {
          const auto at = static_cast<size_t>(t * 48 + r);
          ASSERT_EQ(y[at], model(weights, r, rest.row(t), rest.width, first[at]));
        }
      }
    }
  }
}

// An activation is off by at most half a step of its block, whose largest is 127 steps.
TEST_P(Quantized, AgreesWithTheDecodedWeightsWithinTheActivationsRounding) {
  for (const DType dtype : kTypes) {
    const int64_t cols = 1000;
    const Weights weights(dtype, 40, cols);
    const Tokens tokens(14, cols);
    const std::vector<float> y = multiply(*GetParam(), weights, tokens);
    std::vector<float> row(static_cast<size_t>(cols));
    for (int64_t r = 0; r < 40; ++r) {
      unpack_row(weights.layout, weights.packed, r, row);
      for (int t = 0; t < tokens.count; ++t) {
        double exact = 0, magnitude = 0, bound = 0;
        for (int64_t k = 0; k < cols; ++k) {
          const int64_t first = k / kBlockColumns * kBlockColumns;
          const double half_step =
              largest_of(tokens.row(t) + first, std::min<int64_t>(kBlockColumns, cols - first)) /
              254.0;
          const double weight = row[static_cast<size_t>(k)];
          exact += weight * double{tokens.row(t)[k]};
          magnitude += std::abs(weight * double{tokens.row(t)[k]});
          bound += std::abs(weight) * half_step;
        }
        // And a few roundings to float a block.
        bound += 4.0 * (1 + static_cast<double>(cols) / kBlockColumns) * 0x1p-24 * magnitude;
        ASSERT_NEAR(double{y[static_cast<size_t>(t * 48 + r)]}, exact, bound)
            << dtype_name(dtype) << " token " << t << " row " << r;
      }
    }
  }
}

TEST_P(Quantized, TakesZerosAndTheSmallestNumbersForNothing) {
  const Weights weights(DType::kQ8, 16, 64);
  Tokens tokens(1, 64);
  std::ranges::fill(tokens.data, 0.0F);
  EXPECT_EQ(multiply(*GetParam(), weights, tokens), std::vector<float>(16, 0.0F));
  std::ranges::fill(tokens.data, std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(multiply(*GetParam(), weights, tokens), std::vector<float>(16, 0.0F));
}

TEST_P(Quantized, NeverMakesSomethingFiniteOfWhatIsNot) {
  for (const DType dtype : kTypes) {
    for (const float bad : {NAN, -NAN, std::numeric_limits<float>::infinity()}) {
      const Weights weights(dtype, 16, 100);
      Tokens tokens(2, 100);
      tokens.row(1)[40] = bad;
      const std::vector<float> y = multiply(*GetParam(), weights, tokens);
      for (size_t r = 0; r < 16; ++r) {
        EXPECT_TRUE(std::isfinite(y[r]));
        EXPECT_FALSE(std::isfinite(y[16 + r]));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Quantized, testing::ValuesIn(available_kernels()),
                         [](const testing::TestParamInfo<const KernelTable*>& table) {
                           return std::string(table.param->name);
                         });

}  // namespace
}  // namespace trtmc::cpu
