#include "tensor/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/block_formats.h"
#include "tensor/q4_search.h"

namespace trtmc {
namespace {

constexpr float kMostQ8Code = 127;

// Columns [first, first + 32) of a panel, row beside row. What the matrix doesn't have is zero.
void gather(std::span<const std::span<const float>> rows, size_t cols, size_t first,
            Q4Block& block) {
  const size_t count = first < cols ? std::min<size_t>(kBlockColumns, cols - first) : 0;
  block.columns = static_cast<int>(count);
  std::memset(block.values, 0, sizeof(block.values));
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < count; ++i) block.values[i][row] = rows[row][first + i];
  }
}

// To the nearest integer, ties to even, for |value| < 2^22.
float round_nearest(float value) {
  constexpr float kWhole = 0x1.8p23F;
  return (value + kWhole) - kWhole;
}

void encode(const Q4Block& block, int which, Q8Group& group) {
  float largest[kBlockRows] = {};
  for (const auto& column : block.values) {
    for (int row = 0; row < kBlockRows; ++row) {
      largest[row] = std::max(largest[row], std::fabs(column[row]));
    }
  }
  float scales[kBlockRows];
  for (int row = 0; row < kBlockRows; ++row) {
    group.scales[which][row] = float_to_f16(largest[row] / kMostQ8Code);
    scales[row] = f16_to_float(group.scales[which][row]);
    // Every code is that of 0 then.
    if (scales[row] == 0) scales[row] = kMaxQuantizedMagnitude;
  }
  for (int i = 0; i < kBlockColumns; ++i) {
    auto& codes = group.codes[which * kQuadsPerBlock + i / kQuadColumns];
    for (int row = 0; row < kBlockRows; ++row) {
      const float wanted = round_nearest(block.values[i][row] / scales[row]);
      // A scale that was rounded down puts the largest value beyond the last code.
      const float code = std::clamp(wanted, -kMostQ8Code, kMostQ8Code);
      codes[row][i % kQuadColumns] = static_cast<uint8_t>(static_cast<int>(code) + kQ8Zero);
    }
  }
}

void encode(const Q4Block& block, int which, Q4Group& group) {
  static const Q4Search kSearch = q4_search();
  Q4Encoding encoding;
  kSearch(block, encoding);
  for (int row = 0; row < kBlockRows; ++row) {
    const int shift = encoding.shifts[row] / kQ4ShiftStep + (1 << (kQ4ShiftBits - 1));
    group.scales[which][row] = static_cast<uint16_t>(
        float_to_f16(std::bit_cast<float>(encoding.scales[row])) | static_cast<unsigned>(shift));
  }
  for (int i = 0; i < kBlockColumns; ++i) {
    auto& codes = group.codes[i / kQuadColumns];
    const bool exists = i < block.columns;
    for (int row = 0; row < kBlockRows; ++row) {
      const int code = exists ? encoding.codes[i][row] : kQ4NoCode;
      uint8_t& pair = codes[row][i % kQuadColumns];
      pair = static_cast<uint8_t>(which == 0 ? code : pair | code << 4);
    }
  }
}

template <typename Group>
void quantize(const PackedLayout& layout, std::span<const std::span<const float>> rows,
              std::byte* out) {
  const auto cols = static_cast<size_t>(layout.cols);
  Q4Block block;
  for (size_t first = 0; first < cols; first += kGroupColumns, out += sizeof(Group)) {
    Group group;
    for (int which = 0; which < 2; ++which) {
      gather(rows, cols, first + static_cast<size_t>(which * kBlockColumns), block);
      encode(block, which, group);
    }
    std::memcpy(out, &group, sizeof(group));
  }
}

}  // namespace

Q4Search q4_search() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return avx512::search_q4;
  }
  if (__builtin_cpu_supports("avx2")) return avx2::search_q4;
#endif
  return generic::search_q4;
}

bool is_quantizable(std::span<const float> values) {
  bool all = true;
  for (const float value : values) all &= std::fabs(value) <= kMaxQuantizedMagnitude;
  return all;
}

void quantize_panel(const PackedLayout& layout, std::span<const std::span<const float>> rows,
                    std::span<std::byte> out) {
  TRTMC_CHECK(rows.size() <= size_t{kBlockRows} && out.size() == layout.panel_bytes() &&
                  is_quantized(layout.dtype),
              "not one panel of a quantised type");
  if (layout.dtype == DType::kQ8) {
    quantize<Q8Group>(layout, rows, out.data());
  } else {
    quantize<Q4Group>(layout, rows, out.data());
  }
}

}  // namespace trtmc
