// Every kernel of every instruction set that this machine has, against sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/kv_fp8.h"
#include "tensor/packed_layout.h"

namespace trtmc::cpu {
namespace {

constexpr double kEpsilon = 0x1p-24;  // Half a unit in the last place of 1.
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

class Kernels : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& kernels() const { return *GetParam(); }
};

// W [rows, cols] random, packed, and as the floats that its type holds.
struct Weights {
  Weights(DType dtype, int64_t num_rows, int64_t num_cols) : layout{dtype, num_rows, num_cols} {
    const auto width = static_cast<size_t>(num_cols);
    values = random_floats(static_cast<size_t>(num_rows) * width, 1);
    packed.resize(layout.total_bytes());
    for (int64_t panel = 0; panel < layout.num_panels(); ++panel) {
      std::vector<std::span<const float>> rows;
      for (int64_t r = 16 * panel; r < std::min(num_rows, 16 * panel + 16); ++r) {
        rows.emplace_back(row(r));
      }
      pack_panel(layout, rows,
                 std::span(packed).subspan(static_cast<size_t>(panel) * layout.panel_bytes(),
                                           layout.panel_bytes()));
    }
    for (int64_t r = 0; r < num_rows; ++r) unpack_row(layout, packed, r, row(r));
  }

  std::span<float> row(int64_t r) {
    return std::span(values).subspan(static_cast<size_t>(r * layout.cols),
                                     static_cast<size_t>(layout.cols));
  }

  PackedLayout layout;
  std::vector<float> values;
  std::vector<std::byte> packed;
};

// Rows of `width` floats, filled up with zeros to a multiple of 16.
struct Tokens {
  Tokens(int num_tokens, int64_t num_cols)
      : count(num_tokens), cols(num_cols), width(round_up(num_cols, 16)) {
    data.resize(static_cast<size_t>(count * width));
    const auto values = random_floats(data.size(), 2);
    for (int t = 0; t < count; ++t) {
      std::copy_n(values.begin(), cols, data.begin() + t * width);
      std::rotate(data.begin() + t * width, data.begin() + t * width + t % cols,
                  data.begin() + t * width + cols);
    }
  }
  const float* row(int t) const { return data.data() + t * width; }

  int count;
  int64_t cols;
  int64_t width;
  std::vector<float> data;
};

// [tokens, padded rows of W], by tiles as the executor does it.
std::vector<float> multiply(const KernelTable& kernels, const Weights& weights,
                            const Tokens& tokens) {
  const int tile = kernels.tile_tokens;
  std::vector<float> packed(static_cast<size_t>(round_up(tokens.count, tile) * tokens.width), NAN);
  for (int t = 0; t < tokens.count; t += tile) {
    kernels.pack_tokens(tokens.row(t), std::min(tile, tokens.count - t), tokens.width,
                        packed.data() + t * tokens.width);
  }
  const int64_t stride = weights.layout.num_panels() * 16;
  std::vector<float> y(static_cast<size_t>(tokens.count * stride), NAN);
  const MatmulArgs args{.panels = weights.packed.data(),
                        .panel_bytes = static_cast<int64_t>(weights.layout.panel_bytes()),
                        .num_panels = static_cast<int>(weights.layout.num_panels()),
                        .k = weights.layout.padded_cols(),
                        .x = packed.data(),
                        .x_width = tokens.width,
                        .num_tokens = tokens.count,
                        .y = y.data(),
                        .y_stride = stride};
  matmul_of(kernels, weights.layout.dtype)(args);
  return y;
}

void expect_product(const KernelTable& kernels, DType dtype, int64_t rows, int64_t cols,
                    int num_tokens) {
  Weights weights(dtype, rows, cols);
  const Tokens tokens(num_tokens, cols);
  const std::vector<float> y = multiply(kernels, weights, tokens);
  const int64_t stride = weights.layout.num_panels() * 16;
  for (int t = 0; t < num_tokens; ++t) {
    for (int64_t r = 0; r < stride; ++r) {
      double exact = 0;
      double magnitude = 0;
      for (int64_t k = 0; r < rows && k < cols; ++k) {
        const double product =
            double{weights.row(r)[static_cast<size_t>(k)]} * double{tokens.row(t)[k]};
        exact += product;
        magnitude += std::abs(product);
      }
      // One rounding an addition, and one a product where they are not fused.
      const double bound = static_cast<double>(2 * cols) * kEpsilon * magnitude;
      ASSERT_NEAR(double{y[static_cast<size_t>(t * stride + r)]}, exact, bound)
          << dtype_name(dtype) << " [" << rows << ", " << cols << "] token " << t << " row " << r;
    }
  }
}

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

TEST_P(Kernels, MultiplyWithinRoundingForAnyNumberOfTokens) {
  for (const DType dtype : kTypes) {
    for (const int tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 24, 27}) {
      expect_product(kernels(), dtype, 23, 35, tokens);
    }
  }
}

TEST_P(Kernels, MultiplyWithinRoundingForAnyShape) {
  for (const DType dtype : kTypes) {
    for (const int64_t cols : {1, 2, 15, 16, 17, 1000, 1023, 1025, 2051}) {
      expect_product(kernels(), dtype, 17, cols, 1);
      expect_product(kernels(), dtype, 17, cols, 14);
    }
    for (const int64_t rows : {1, 16, 31, 48, 63, 80, 130}) {
      expect_product(kernels(), dtype, rows, 40, 1);
      expect_product(kernels(), dtype, rows, 40, 14);
    }
  }
}

TEST_P(Kernels, MultiplyEachTokenToTheSameBitsInAnyCompany) {
  for (const DType dtype : kTypes) {
    const Weights weights(dtype, 70, 1500);
    const Tokens all(27, 1500);
    const std::vector<float> together = multiply(kernels(), weights, all);
    for (int t = 0; t < all.count; ++t) {
      Tokens one(1, 1500);
      std::copy_n(all.row(t), all.width, one.data.begin());
      const std::vector<float> alone = multiply(kernels(), weights, one);
      ASSERT_EQ(0, std::memcmp(alone.data(), &together[static_cast<size_t>(t) * alone.size()],
                               alone.size() * sizeof(float)))
          << dtype_name(dtype) << " token " << t;
    }
  }
}

// One times a weight is the weight: every value of the two 16-bit types, 16 at a time.
TEST_P(Kernels, WidenEveryValueOfTheHalfTypesExactly) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    Weights weights(dtype, 65536, 1);
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const int64_t at = weights.layout.index(bits, 0);
      const auto half = static_cast<uint16_t>(bits);
      std::memcpy(weights.packed.data() + 2 * at, &half, 2);
    }
    Tokens one(1, 1);
    one.data[0] = 1;
    const std::vector<float> y = multiply(kernels(), weights, one);
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const auto half = static_cast<uint16_t>(bits);
      const float exact = dtype == DType::kF16 ? f16_to_float(half) : bf16_to_float(half);
      // Their neighbour of a pair is multiplied with zero, so that infinities end here too.
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(y[bits])) << dtype_name(dtype) << " " << bits;
      } else {
        ASSERT_EQ(y[bits], exact) << dtype_name(dtype) << " " << bits;
      }
    }
  }
}

TEST_P(Kernels, ExponentiateWithinTwoUnitsInTheLastPlace) {
  std::vector<float> x;
  for (float v = -103.9F; v < 88.7F; v += 0.000731F) x.push_back(v);
  for (const float v : {-0.0F, 0.0F, 1.0F, -1.0F, 88.72F, -87.3F, -87.4F}) x.push_back(v);
  while (x.size() % 16 != 0) x.push_back(0);
  std::vector<float> y(x.size());
  kernels().exp(x.data(), static_cast<int64_t>(x.size()), y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(double{x[i]});
    // Subnormal results have fewer bits: their unit is 2^-149.
    const double unit = std::max(exact * 2 * kEpsilon, 0x1p-149);
    ASSERT_NEAR(double{y[i]}, exact, 2 * unit) << x[i];
  }
}

TEST_P(Kernels, ExponentiateTheEndsOfTheLine) {
  std::vector<float> x(16, 0.0F);
  x = {0, -kInfinity, kInfinity, NAN, -105, -1e30F, 89, 1e30F, 0, 0, 0, 0, 0, 0, 0, 0};
  kernels().exp(x.data(), 16, x.data());
  EXPECT_EQ(x[0], 1.0F);
  EXPECT_EQ(x[1], 0.0F);
  EXPECT_EQ(x[2], kInfinity);
  EXPECT_TRUE(std::isnan(x[3]));
  EXPECT_EQ(x[4], 0.0F);
  EXPECT_EQ(x[5], 0.0F);
  EXPECT_EQ(x[6], kInfinity);
  EXPECT_EQ(x[7], kInfinity);
}

TEST_P(Kernels, GateWithinRounding) {
  std::vector<float> gate = random_floats(4096, 3);
  for (float& g : gate) g *= 30;
  const std::vector<float> up = random_floats(4096, 4);
  std::vector<float> y(4096);
  kernels().swiglu(gate.data(), up.data(), 4096, y.data());
  for (size_t i = 0; i < y.size(); ++i) {
    const double exact = double{gate[i]} / (1 + std::exp(-double{gate[i]})) * double{up[i]};
    // The exponential's two units, the sum, the quotient, the product; subnormals aside.
    ASSERT_NEAR(double{y[i]}, exact, 8 * kEpsilon * std::abs(exact) + 0x1p-126) << gate[i];
  }
}

TEST_P(Kernels, NormWithinRounding) {
  for (const int64_t width : {1, 15, 16, 17, 100, 2048}) {
    const Tokens x(1, width);
    const Tokens weight(1, width);
    std::vector<float> y(static_cast<size_t>(x.width), NAN);
    kernels().rms_norm(x.row(0), weight.row(0), width, x.width, 1e-6F, y.data());
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += double{x.row(0)[i]} * double{x.row(0)[i]};
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + double{1e-6F});
    for (int64_t i = 0; i < x.width; ++i) {
      const double exact = double{weight.row(0)[i]} * double{x.row(0)[i]} * inverse;
      // A 16th of the squares is added one after the other, then half of that error is the root's.
      const double bound = (static_cast<double>(width) / 16 + 16) * kEpsilon * std::abs(exact);
      ASSERT_NEAR(double{y[static_cast<size_t>(i)]}, exact, bound) << width << " at " << i;
    }
  }
}

TEST_P(Kernels, AddAndDivideExactly) {
  const std::vector<float> a = random_floats(48, 5);
  const std::vector<float> b = random_floats(48, 6);
  std::vector<float> sum(48);
  std::vector<float> quotient(48);
  kernels().add(a.data(), b.data(), 48, sum.data());
  kernels().divide(a.data(), 3.0F, 48, quotient.data());
  for (size_t i = 0; i < 48; ++i) {
    EXPECT_EQ(sum[i], a[i] + b[i]);
    EXPECT_EQ(quotient[i], a[i] / 3.0F);
  }
}

// ---- Attention: some heads over one block after another, as a sequence goes.

struct AttentionCase {
  int heads;
  int head_dim;
  int first;  // Of all positions.
  int last;
};

enum class Kept { kF32, kBF16, kQ8, kFp8 };
using Floats = std::vector<float>;

float scale_of(size_t position) { return std::ldexp(1.0F, static_cast<int>(position % 3) - 6); }

uint8_t fp8_code_of(float x) { return fp8_code(std::bit_cast<uint32_t>(x)); }

// x [positions, head_dim], rounded to what is kept as it is: whole numbers of at most 7 bits, which
// all but fp8 keep, or values of fp8; times a power of two for each position.
Floats keepable(Floats x, size_t head_dim, Kept kept) {
  for (size_t i = 0; i < x.size(); ++i) {
    const float scale = scale_of(i / head_dim);
    const float steps = x[i] / scale;
    x[i] = scale * (kept == Kept::kFp8 ? fp8_value(fp8_code_of(steps))
                                       : std::clamp(std::nearbyint(steps), -127.0F, 127.0F));
  }
  return x;
}

// Blocks of keys [head_dim, 32] and values [32, head_dim] of one KV head; what the case does not
// see is not a number.
struct Blocks {
  Blocks(const AttentionCase& c, Kept kept) : head_dim(static_cast<size_t>(c.head_dim)) {
    keys = keepable(random_floats(static_cast<size_t>(c.last) * head_dim, 7), head_dim, kept);
    values = keepable(random_floats(static_cast<size_t>(c.last) * head_dim, 8), head_dim, kept);
    const auto num_blocks = static_cast<size_t>(c.last + kKvBlockSize - 1) / kKvBlockSize;
    block_keys.assign(num_blocks * kKvBlockSize * head_dim, NAN);
    block_values = block_keys;
    for (auto p = static_cast<size_t>(c.first); p < static_cast<size_t>(c.last); ++p) {
      const size_t block = p / kKvBlockSize * kKvBlockSize * head_dim;
      for (size_t d = 0; d < head_dim; ++d) {
        block_keys[block + d * kKvBlockSize + p % kKvBlockSize] = keys[p * head_dim + d];
        block_values[block + p % kKvBlockSize * head_dim + d] = values[p * head_dim + d];
      }
    }
  }

  size_t head_dim;
  std::vector<float> keys, values;              // [positions, head_dim]
  std::vector<float> block_keys, block_values;  // By blocks.
};

// One block's floats, as it is kept: keys if their positions are `neighbours`, else values.
std::vector<std::byte> keep(std::span<const float> floats, size_t first, Kept kept,
                            bool neighbours) {
  std::vector<std::byte> bytes;
  const auto append = [&bytes](auto value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof(value));
  };
  const size_t head_dim = floats.size() / kKvBlockSize;
  std::array<float, kKvBlockSize> scales{};
  for (size_t i = 0; i < floats.size(); ++i) {
    const size_t position = neighbours ? i % kKvBlockSize : i / head_dim;
    if (kept == Kept::kF32) {
      append(floats[i]);
    } else if (kept == Kept::kBF16) {
      append(float_to_bf16(floats[i]));
    } else if (std::isnan(floats[i])) {
      append(int8_t{77});
      scales[position] = NAN;
    } else {
      scales[position] = scale_of(first + position);
      const float steps = floats[i] / scales[position];
      append(kept == Kept::kFp8 ? fp8_code_of(steps)
                                : static_cast<uint8_t>(static_cast<int8_t>(steps)));
    }
  }
  if (kept == Kept::kQ8 || kept == Kept::kFp8) append(scales);
  return bytes;
}

std::vector<float> attend(const KernelTable& kernels, const AttentionCase& c, const Blocks& blocks,
                          const std::vector<float>& q, Kept kept) {
  const auto heads = static_cast<size_t>(c.heads);
  std::vector<float> mixed(q.size());
  std::vector<float> largest(heads, -kInfinity);
  std::vector<float> sum(heads);
  AttentionArgs args{};
  args.q = q.data();
  args.num_heads = c.heads;
  args.head_dim = c.head_dim;
  args.scale = 0.125F;
  args.largest = largest.data();
  args.sum = sum.data();
  args.mixed = mixed.data();
  for (int start = c.first / kKvBlockSize * kKvBlockSize; start < c.last; start += kKvBlockSize) {
    const size_t at = static_cast<size_t>(start) * blocks.head_dim;
    args.first = std::max(0, c.first - start);
    args.last = std::min(kKvBlockSize, c.last - start);
    const size_t size = kKvBlockSize * blocks.head_dim;
    const auto first = static_cast<size_t>(start);
    const auto keys = keep(std::span(blocks.block_keys).subspan(at, size), first, kept, true);
    const auto values = keep(std::span(blocks.block_values).subspan(at, size), first, kept, false);
    args.keys = keys.data();
    args.values = values.data();
    (kept == Kept::kFp8    ? kernels.attend_fp8
     : kept == Kept::kQ8   ? kernels.attend_q8
     : kept == Kept::kBF16 ? kernels.attend_bf16
                           : kernels.attend_f32)(args);
  }
  for (size_t h = 0; h < heads; ++h) {
    for (size_t d = 0; d < blocks.head_dim; ++d) mixed[h * blocks.head_dim + d] /= sum[h];
  }
  return mixed;
}

void expect_attention(const KernelTable& kernels, const AttentionCase& c, Kept kept) {
  const Blocks blocks(c, kept);
  const auto q = random_floats(static_cast<size_t>(c.heads * c.head_dim), 9);
  const std::vector<float> got = attend(kernels, c, blocks, q, kept);
  const size_t width = blocks.head_dim;
  for (size_t h = 0; h < static_cast<size_t>(c.heads); ++h) {
    std::vector<double> weights;
    double score_error = 0;
    for (auto p = static_cast<size_t>(c.first); p < static_cast<size_t>(c.last); ++p) {
      double score = 0;
      double magnitude = 0;
      for (size_t d = 0; d < width; ++d) {
        const double product = double{q[h * width + d]} * double{blocks.keys[p * width + d]};
        score += product;
        magnitude += std::abs(product);
      }
      weights.push_back(std::exp(0.125 * score));
      score_error =
          std::max(score_error, 0.125 * magnitude * static_cast<double>(2 * width) * kEpsilon);
    }
    double total = 0;
    for (const double weight : weights) total += weight;
    for (size_t d = 0; d < width; ++d) {
      double exact = 0;
      double magnitude = 0;
      for (size_t i = 0; i < weights.size(); ++i) {
        const size_t p = static_cast<size_t>(c.first) + i;
        exact += weights[i] / total * double{blocks.values[p * width + d]};
        magnitude += weights[i] / total * std::abs(double{blocks.values[p * width + d]});
      }
      // A weight is off by its score's error and the exponential's; then one rounding a position
      // in the sum and one in the weighted sum, and a few a block. Scales are powers of two.
      const double bound =
          magnitude *
          (2 * score_error + (4.0 * static_cast<double>(weights.size()) + 16) * kEpsilon);
      ASSERT_NEAR(double{got[h * width + d]}, exact, bound)
          << c.heads << " heads of " << c.head_dim << ", positions " << c.first << " to " << c.last;
    }
  }
}

TEST_P(Kernels, AttendWithinRounding) {
  for (const Kept kept : {Kept::kF32, Kept::kBF16, Kept::kQ8, Kept::kFp8}) {
    for (const int heads : {1, 2, 3, 4, 5, 8, 11})
      expect_attention(kernels(), {heads, 64, 0, 77}, kept);
    for (const int width : {16, 48, 64, 80, 128, 256}) {
      expect_attention(kernels(), {4, width, 0, 77}, kept);
    }
    for (const int last : {1, 2, 31, 32, 33, 64, 300})
      expect_attention(kernels(), {4, 64, 0, last}, kept);
    for (const int first : {1, 31, 32, 50, 76})
      expect_attention(kernels(), {3, 64, first, 77}, kept);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Kernels, testing::ValuesIn(available_kernels()),
                         [](const testing::TestParamInfo<const KernelTable*>& table) {
                           return std::string(table.param->name);
                         });

}  // namespace
}  // namespace trtmc::cpu
