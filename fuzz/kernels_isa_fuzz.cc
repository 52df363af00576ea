// Every kernel of every instruction set that this machine has, on the same operands: shapes, sizes
// and values are the input's, NaN, infinities and subnormals among them. Each result is held to
// sums in double, within a bound that follows from the operands, so that any two instruction sets
// agree within twice that bound; where a NaN or an infinity takes part, all give the same one.
// Products of quantised weights have the same bits with all.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/kv_bytes.h"
#include "backends/kv_type.h"
#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "tensor/block_formats.h"
#include "tensor/packed_layout.h"

namespace {

using trtmc::DType;
using trtmc::KvType;
using trtmc::PackedLayout;
using trtmc::cpu::KernelTable;
using trtmc::cpu::quantized_width;
using trtmc::cpu::round_up;

constexpr double kEpsilon = 0x1p-24;  // Half a unit in the last place of 1.
constexpr double kSubnormal = 0x1p-149;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr double kSafe = double{kLargest} / 4;  // Sums below it overflow nowhere on their way.

// A value of any kind: bits as they are, the odd ones, or an ordinary one of any size.
float any_value(trtmc::FuzzInput& input) {
  constexpr float kOdd[] = {0.0F,       -0.0F,      kInfinity, -kInfinity,      NAN,  0x1p-149F,
                            -0x1p-149F, 0x1p-126F,  kLargest,  -kLargest,       1.0F, -1.0F,
                            88.72284F,  -87.33655F, 65504.0F,  0x1.fffffep-127F};
  switch (input.below(3)) {
    case 0:
      return input.number<float>();
    case 1:
      return kOdd[input.below(std::size(kOdd))];
    default:
      return std::ldexp(static_cast<float>(input.number<int16_t>()), input.number<int8_t>());
  }
}

// Normal values times a power of two, and some of them replaced.
std::vector<float> values(trtmc::FuzzInput& input, size_t count) {
  std::mt19937 random(input.number<uint16_t>());
  const int exponent = input.chance() ? input.number<int8_t>() : 0;
  std::normal_distribution<float> normal;
  std::vector<float> result(count);
  for (float& value : result) value = std::ldexp(normal(random), exponent);
  for (size_t left = input.below(6); left > 0; --left) {
    const size_t at = input.number<uint16_t>() % count;
    result[at] = any_value(input);
  }
  return result;
}

// What a result has to be: near `exact`, or of its kind if that is no finite number. `largest` is
// what sums on the way may reach.
void expect(float got, double exact, double bound, double largest) {
  if (std::isnan(exact)) {
    TRTMC_CHECK(std::isnan(got), "a number in place of NaN");
  } else if (largest > kSafe || std::isnan(largest)) {
    return;  // Whether it overflows depends on the order, and on how products are rounded.
  } else if (std::isinf(exact)) {
    TRTMC_CHECK(double{got} == exact, "no infinity, or the other one");
  } else {
    TRTMC_CHECK(std::abs(double{got} - exact) <= bound, "a result outside its bound");
  }
}

double finite_magnitude(double value) { return std::isfinite(value) ? std::abs(value) : 0; }

// ---- Products

struct Weights {
  PackedLayout layout;
  std::vector<float> rows;  // [rows, cols], as the type holds them.
  std::vector<std::byte> packed;
};

Weights pack(const PackedLayout& layout, std::vector<float> rows) {
  Weights weights{layout, std::move(rows), std::vector<std::byte>(layout.total_bytes())};
  const auto cols = static_cast<size_t>(layout.cols);
  for (int64_t panel = 0; panel < layout.num_panels(); ++panel) {
    std::vector<std::span<const float>> of_panel;
    for (int64_t r = 16 * panel; r < std::min(layout.rows, 16 * panel + 16); ++r) {
      of_panel.emplace_back(&weights.rows[static_cast<size_t>(r) * cols], cols);
    }
    pack_panel(
        layout, of_panel,
        std::span(weights.packed)
            .subspan(static_cast<size_t>(panel) * layout.panel_bytes(), layout.panel_bytes()));
  }
  for (int64_t r = 0; r < layout.rows; ++r) {
    unpack_row(layout, weights.packed, r,
               std::span(weights.rows).subspan(static_cast<size_t>(r) * cols, cols));
  }
  return weights;
}

// y [tokens, panel rows] of x [tokens, width], by tiles as the executor does it.
std::vector<float> multiply(const KernelTable& kernels, const Weights& weights,
                            const std::vector<float>& x, int num_tokens, int64_t width) {
  const int tile = kernels.tile_tokens;
  const bool quantized = is_quantized(weights.layout.dtype);
  const int64_t columns = weights.layout.padded_cols();
  const int64_t x_width = quantized ? quantized_width(columns) : width;
  std::vector<float> packed(static_cast<size_t>(round_up(num_tokens, tile) * x_width), NAN);
  for (int t = 0; t < num_tokens; t += tile) {
    const float* from = &x[static_cast<size_t>(t * width)];
    float* to = &packed[static_cast<size_t>(t * x_width)];
    const int count = std::min(tile, num_tokens - t);
    if (quantized) {
      kernels.quantize_tokens(from, count, width, columns, to, nullptr);
    } else {
      kernels.pack_tokens(from, count, width, to);
    }
  }
  const int64_t stride = weights.layout.num_panels() * 16;
  std::vector<float> y(static_cast<size_t>(num_tokens * stride), NAN);
  matmul_of(kernels, weights.layout.dtype)(
      {.panels = weights.packed.data(),
       .panel_bytes = static_cast<int64_t>(weights.layout.panel_bytes()),
       .num_panels = static_cast<int>(weights.layout.num_panels()),
       .k = weights.layout.padded_cols(),
       .x = packed.data(),
       .x_width = x_width,
       .num_tokens = num_tokens,
       .y = y.data(),
       .y_stride = stride});
  return y;
}

// Of `cols` columns, rows filled up with zeros to a multiple of 16.
struct Tokens {
  Tokens(trtmc::FuzzInput& input, int num_tokens, size_t num_cols)
      : count(num_tokens),
        cols(num_cols),
        width(static_cast<size_t>(round_up(static_cast<int64_t>(num_cols), 16))),
        x(static_cast<size_t>(count) * width) {
    const std::vector<float> tokens = values(input, static_cast<size_t>(count) * cols);
    for (size_t t = 0; t < static_cast<size_t>(count); ++t) {
      std::copy_n(&tokens[t * cols], cols, &x[t * width]);
    }
  }
  std::span<const float> row(size_t t) const { return std::span(x).subspan(t * width, cols); }

  int count;
  size_t cols, width;
  std::vector<float> x;
};

std::vector<std::vector<float>> multiply_all(const Weights& weights, const Tokens& tokens) {
  std::vector<std::vector<float>> results;
  for (const KernelTable* kernels : trtmc::cpu::available_kernels()) {
    results.push_back(
        multiply(*kernels, weights, tokens.x, tokens.count, static_cast<int64_t>(tokens.width)));
  }
  return results;
}

PackedLayout any_layout(trtmc::FuzzInput& input, DType dtype) {
  return {dtype, 1 + static_cast<int64_t>(input.below(70)), 1 + input.number<uint16_t>() % 1100};
}

void check_products(trtmc::FuzzInput& input) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  const DType dtype = kTypes[input.below(3)];
  const int num_tokens = 1 + static_cast<int>(input.below(27));
  const PackedLayout layout = any_layout(input, dtype);
  const auto rows = static_cast<size_t>(layout.rows), cols = static_cast<size_t>(layout.cols);
  const Weights weights = pack(layout, values(input, rows * cols));
  const Tokens tokens(input, num_tokens, cols);
  const auto results = multiply_all(weights, tokens);
  const auto stride = static_cast<size_t>(layout.num_panels() * 16);
  for (size_t t = 0; t < static_cast<size_t>(num_tokens); ++t) {
    for (size_t r = 0; r < rows; ++r) {
      double exact = 0, magnitude = 0;
      for (size_t k = 0; k < cols; ++k) {
        const double product = double{weights.rows[r * cols + k]} * double{tokens.row(t)[k]};
        exact += product;
        magnitude += finite_magnitude(product);
      }
      // One rounding an addition, and one a product where they are not fused.
      const double bound = static_cast<double>(2 * cols) * (kEpsilon * magnitude + kSubnormal);
      for (const auto& y : results) expect(y[t * stride + r], exact, bound, magnitude);
    }
  }
}

// Any codes, and any scales that are finite.
Weights any_quantized(trtmc::FuzzInput& input, const PackedLayout& layout) {
  constexpr uint16_t kF16Infinity = 0x7C00;
  const auto rows = static_cast<size_t>(layout.rows), cols = static_cast<size_t>(layout.cols);
  Weights weights{layout, std::vector<float>(rows * cols),
                  std::vector<std::byte>(layout.total_bytes())};
  std::mt19937 random(input.number<uint16_t>());
  for (std::byte& byte : weights.packed) byte = static_cast<std::byte>(random());
  for (size_t at = 0; at < weights.packed.size(); at += layout.group_bytes()) {
    for (size_t i = 0; i < size_t{2} * trtmc::kBlockRows; ++i) {
      auto bits = static_cast<uint16_t>(random());
      if ((bits & kF16Infinity) == kF16Infinity) bits ^= 0x0400;
      std::memcpy(&weights.packed[at + 2 * i], &bits, sizeof(bits));
    }
  }
  for (int64_t r = 0; r < layout.rows; ++r) {
    unpack_row(layout, weights.packed, r,
               std::span(weights.rows).subspan(static_cast<size_t>(r) * cols, cols));
  }
  return weights;
}

// Half a step of each column's block, whose largest activation is 127 steps.
std::vector<double> half_steps(std::span<const float> x) {
  std::vector<double> steps;
  for (size_t first = 0; first < x.size(); first += trtmc::kBlockColumns) {
    const size_t count = std::min<size_t>(trtmc::kBlockColumns, x.size() - first);
    double largest = 0;
    for (const float value : x.subspan(first, count)) {
      largest = std::max(largest, std::abs(double{value}));
    }
    // What is smaller than that counts for nothing.
    constexpr double kNothing = 0x1p-100;
    steps.insert(steps.end(), count, largest / 254 * (1 + 1e-4) + kNothing);
  }
  return steps;
}

// Of one token. y: by instruction set, the same bits with all.
void expect_quantized(const Weights& weights, std::span<const float> x,
                      const std::vector<std::span<const float>>& y) {
  const size_t cols = x.size();
  const bool finite = std::all_of(x.begin(), x.end(), [](float v) { return std::isfinite(v); });
  const std::vector<double> steps = half_steps(x);
  for (size_t r = 0; r < static_cast<size_t>(weights.layout.rows); ++r) {
    for (const auto& other : y) {
      TRTMC_CHECK(finite || !std::isfinite(other[r]), "a number of what is none");
      TRTMC_CHECK(!finite || other[r] == y[0][r] || (std::isnan(other[r]) && std::isnan(y[0][r])),
                  "other bits than another instruction set's");
    }
    if (!finite) continue;
    double exact = 0, magnitude = 0, bound = 0;
    for (size_t k = 0; k < cols; ++k) {
      const double weight = double{weights.rows[r * cols + k]};
      exact += weight * double{x[k]};
      magnitude += std::abs(weight) * (std::abs(double{x[k]}) + steps[k]);
      bound += std::abs(weight) * steps[k];
    }
    // And a few roundings to float a block.
    const auto blocks = static_cast<double>(1 + cols / trtmc::kBlockColumns);
    bound += 4 * blocks * (kEpsilon * magnitude + kSubnormal);
    // Whole numbers below 2^21 are multiplied by the largest activation / 127 before the weights'
    // scale is, which may overflow where the floats don't.
    const double largest = 254 * *std::max_element(steps.begin(), steps.end());
    expect(y[0][r], exact, bound, std::max(magnitude, largest * 0x1p15));
  }
}

void check_quantized_products(trtmc::FuzzInput& input) {
  constexpr DType kTypes[] = {DType::kQ8, DType::kQ6, DType::kQ4};
  const DType dtype = kTypes[input.below(3)];
  const int num_tokens = 1 + static_cast<int>(input.below(27));
  const PackedLayout layout = any_layout(input, dtype);
  const Weights weights = any_quantized(input, layout);
  const Tokens tokens(input, num_tokens, static_cast<size_t>(layout.cols));
  const auto results = multiply_all(weights, tokens);
  const auto stride = static_cast<size_t>(layout.num_panels() * 16);
  for (size_t t = 0; t < static_cast<size_t>(num_tokens); ++t) {
    std::vector<std::span<const float>> rows;
    for (const auto& y : results) rows.push_back(std::span(y).subspan(t * stride, stride));
    expect_quantized(weights, tokens.row(t), rows);
  }
}

// ---- Element by element

void check_exp(trtmc::FuzzInput& input) {
  const size_t count = 16 * (1 + input.below(4));
  const std::vector<float> x = values(input, count);
  for (const KernelTable* kernels : trtmc::cpu::available_kernels()) {
    std::vector<float> y(count);
    kernels->exp(x.data(), static_cast<int64_t>(count), y.data());
    for (size_t i = 0; i < count; ++i) {
      const double exact = std::exp(double{x[i]});
      // Two units in the last place; of the largest number, infinity is the next.
      const double bound = 2 * std::max(exact * 2 * kEpsilon, kSubnormal);
      if (!std::isnan(exact) && exact + bound > double{kLargest}) {
        TRTMC_CHECK(y[i] == kInfinity || double{y[i]} >= exact - bound, "too small for its size");
      } else {
        expect(y[i], exact, bound, 0);
      }
    }
  }
}

void check_gate(trtmc::FuzzInput& input) {
  const size_t count = 16 * (1 + input.below(4));
  const std::vector<float> gate = values(input, count), up = values(input, count);
  for (const KernelTable* kernels : trtmc::cpu::available_kernels()) {
    std::vector<float> y(count);
    kernels->swiglu(gate.data(), up.data(), static_cast<int64_t>(count), y.data());
    for (size_t i = 0; i < count; ++i) {
      const double silu = double{gate[i]} / (1 + std::exp(-double{gate[i]}));
      const double exact = silu * double{up[i]};
      // The exponential's two units, the sum, the quotient, the product. Below -88 the exponential
      // is infinite in float and the quotient zero, as in PyTorch's own formula.
      const double vanished = gate[i] < -88.0F ? std::abs(exact) : 0;
      const double bound = 8 * kEpsilon * std::abs(exact) + vanished +
                           kSubnormal * (2 + finite_magnitude(double{up[i]}));
      if (vanished > 0 && std::isinf(up[i])) continue;  // Zero times infinity.
      expect(y[i], exact, bound, finite_magnitude(exact));
    }
  }
}

void check_norm(trtmc::FuzzInput& input) {
  const auto width = static_cast<size_t>(1 + input.number<uint16_t>() % 3000);
  const auto padded = static_cast<size_t>(round_up(static_cast<int64_t>(width), 16));
  const float eps = std::ldexp(1.0F, -1 - static_cast<int>(input.below(30)));
  std::vector<float> x = values(input, width), weight = values(input, width);
  x.resize(padded);
  weight.resize(padded);
  double squares = 0, finite_squares = 0;
  for (const float value : x) {
    squares += double{value} * double{value};
    finite_squares += finite_magnitude(double{value} * double{value});
  }
  const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + double{eps});
  for (const KernelTable* kernels : trtmc::cpu::available_kernels()) {
    std::vector<float> y(padded, NAN);
    kernels->rms_norm(x.data(), weight.data(), static_cast<int64_t>(width),
                      static_cast<int64_t>(padded), eps, y.data());
    for (size_t i = 0; i < width; ++i) {
      if (finite_squares > kSafe) continue;  // Infinite in float: the row becomes zero.
      const double scaled = double{x[i]} * inverse;
      const double exact = double{weight[i]} * scaled;
      // A 16th of the squares is added one after the other, half of that error is the root's.
      const double bound = (static_cast<double>(width) / 16 + 16) * kEpsilon * std::abs(exact) +
                           kSubnormal * (2 + finite_magnitude(double{weight[i]}));
      expect(y[i], exact, bound, std::max(finite_magnitude(exact), finite_magnitude(scaled)));
    }
  }
}

void check_sum_and_quotient(trtmc::FuzzInput& input) {
  const size_t count = 16 * (1 + input.below(4));
  const std::vector<float> a = values(input, count), b = values(input, count);
  const float divisor = any_value(input);
  const auto same = [](float got, float want) {
    TRTMC_CHECK(got == want || (std::isnan(got) && std::isnan(want)), "not the one float nearest");
  };
  for (const KernelTable* kernels : trtmc::cpu::available_kernels()) {
    std::vector<float> sum(count), quotient(count);
    kernels->add(a.data(), b.data(), static_cast<int64_t>(count), sum.data());
    kernels->divide(a.data(), divisor, static_cast<int64_t>(count), quotient.data());
    for (size_t i = 0; i < count; ++i) {
      same(sum[i], static_cast<float>(double{a[i]} + double{b[i]}));
      same(quotient[i], static_cast<float>(double{a[i]} / double{divisor}));
    }
  }
}

// ---- Attention

constexpr size_t kBlock = trtmc::cpu::kKvBlockSize;

struct Attention {
  KvType type;
  size_t heads, width, first, last;  // Of one block.
  std::vector<float> q;              // [heads, width]
  std::vector<float> keys, values;   // [block, width], as the cache's type holds them.
};

// A block of the cache: of keys if the positions of a column are `neighbours`, else of values. What
// is not seen is not a number, or any bytes with such a scale.
std::vector<uint8_t> in_cache(const Attention& a, const std::vector<float>& rows, bool neighbours) {
  const size_t size = a.type == KvType::kF32 ? 4 : a.type == KvType::kBF16 ? 2 : 1;
  std::vector<uint8_t> cached(kBlock * a.width * size);
  std::vector<float> scales(kBlock, NAN);
  std::vector<int8_t> codes(a.width);
  for (size_t p = 0; p < kBlock; ++p) {
    const bool is_seen = p >= a.first && p < a.last;
    const std::span row(&rows[p * a.width], a.width);
    if (is_seen) scales[p] = trtmc::head_to_bytes(row, codes);
    for (size_t d = 0; d < a.width; ++d) {
      const float x = is_seen ? row[d] : NAN;
      const uint16_t half = trtmc::float_to_bf16(x);
      const void* from = size == 4 ? static_cast<const void*>(&x) : &half;
      if (size == 1) from = &codes[d];
      std::memcpy(&cached[(neighbours ? d * kBlock + p : p * a.width + d) * size], from, size);
    }
  }
  if (size == 1) {
    const auto* begin = reinterpret_cast<const uint8_t*>(scales.data());
    cached.insert(cached.end(), begin, begin + kBlock * sizeof(float));
  }
  return cached;
}

std::vector<float> attend(const KernelTable& kernels, const Attention& a) {
  const auto keys = in_cache(a, a.keys, true), values = in_cache(a, a.values, false);
  std::vector<float> mixed(a.heads * a.width), largest(a.heads, -kInfinity), sum(a.heads);
  auto* kernel = a.type == KvType::kF32    ? kernels.attend_f32
                 : a.type == KvType::kBF16 ? kernels.attend_bf16
                                           : kernels.attend_q8;
  kernel({.q = a.q.data(),
          .num_heads = static_cast<int>(a.heads),
          .head_dim = static_cast<int>(a.width),
          .keys = keys.data(),
          .values = values.data(),
          .first = static_cast<int>(a.first),
          .last = static_cast<int>(a.last),
          .scale = 0.125F,
          .largest = largest.data(),
          .sum = sum.data(),
          .mixed = mixed.data()});
  for (size_t i = 0; i < mixed.size(); ++i) mixed[i] /= sum[i / a.width];
  return mixed;
}

void expect_head(const Attention& a, size_t head, const std::vector<std::vector<float>>& results) {
  constexpr double kMostScoreError = 0.01;  // Beyond it the bound says nothing.
  std::vector<double> scores;
  double score_error = 0;
  for (size_t p = a.first; p < a.last; ++p) {
    double score = 0, magnitude = 0;
    for (size_t d = 0; d < a.width; ++d) {
      const double product = double{a.q[head * a.width + d]} * double{a.keys[p * a.width + d]};
      score += product;
      magnitude += std::abs(product);
    }
    scores.push_back(0.125 * score);
    score_error = std::max(score_error, 0.125 * static_cast<double>(2 * a.width) *
                                            (magnitude * kEpsilon + kSubnormal));
  }
  if (!(score_error < kMostScoreError)) return;
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - largest);
  for (size_t d = 0; d < a.width; ++d) {
    double exact = 0, magnitude = 0, most = 0;
    for (size_t p = a.first; p < a.last; ++p) {
      const double value = double{a.values[p * a.width + d]};
      exact += scores[p - a.first] / total * value;
      magnitude += finite_magnitude(scores[p - a.first] / total * value);
      most = std::max(most, finite_magnitude(value));
    }
    const auto seen = static_cast<double>(a.last - a.first);
    // A weight is off by its score's error and the exponential's, a subnormal one by its unit; then
    // one rounding a position in the sum and one in the weighted sum. Times a byte's scale it may
    // be subnormal before it is multiplied with the byte.
    const double widest = a.type == KvType::kQ8 ? 127 : 1;
    const double bound = magnitude * (2 * score_error + (4 * seen + 16) * kEpsilon) +
                         2 * seen * kSubnormal * (most + widest);
    for (const auto& mixed : results) {
      expect(mixed[head * a.width + d], exact, bound, most * seen);
    }
  }
}

// Rounds rows [block, width] to what the cache holds.
void hold(std::vector<float>& rows, const Attention& a) {
  if (a.type == KvType::kBF16) {
    for (float& x : rows) x = trtmc::bf16_to_float(trtmc::float_to_bf16(x));
  } else if (a.type == KvType::kQ8) {
    std::vector<int8_t> codes(a.width);
    for (size_t first = 0; first < rows.size(); first += a.width) {
      const float scale = trtmc::head_to_bytes(std::span(&rows[first], a.width), codes);
      for (size_t d = 0; d < a.width; ++d) rows[first + d] = scale * static_cast<float>(codes[d]);
    }
  }
}

constexpr float kMostWithBytes = 1e33F;

void check_attention(trtmc::FuzzInput& input) {
  const KvType type = static_cast<KvType>(input.below(trtmc::kv_type_names().size()));
  Attention a{type, 1 + input.below(11), 16 * (1 + input.below(9)), input.below(kBlock), 0, {}, {},
              {}};
  a.last = a.first + 1 + input.below(kBlock - a.first);
  a.q = values(input, a.heads * a.width);
  a.keys = values(input, kBlock * a.width);
  a.values = values(input, kBlock * a.width);
  for (auto* rows : {&a.keys, &a.values}) hold(*rows, a);
  // Bytes are multiplied before their scale is, which may overflow where the floats don't.
  for (const float x : a.q) {
    if (type == KvType::kQ8 && !(std::abs(x) < kMostWithBytes)) return;
  }
  std::vector<std::vector<float>> results;
  for (const KernelTable* kernels : trtmc::cpu::available_kernels()) {
    results.push_back(attend(*kernels, a));
  }
  for (size_t head = 0; head < a.heads; ++head) expect_head(a, head, results);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr void (*kChecks[])(trtmc::FuzzInput&) = {check_products,
                                                    check_exp,
                                                    check_gate,
                                                    check_norm,
                                                    check_attention,
                                                    check_sum_and_quotient,
                                                    check_quantized_products};
  trtmc::FuzzInput input(data, size);
  kChecks[input.below(std::size(kChecks))](input);
  return 0;
}
