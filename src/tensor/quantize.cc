#include "tensor/quantize.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/block_encoders.h"
#include "tensor/block_formats.h"

namespace trtmc {
namespace {

constexpr float kMostQ8Code = 127;

// The encoders of this machine.
const BlockEncoders& encoders() {
  static const BlockEncoders* const kBest = runnable_encoders(0);
  return *kBest;
}

// Columns [first, first + 32) of a panel, row beside row. What the matrix doesn't have is zero.
void gather(std::span<const std::span<const float>> rows, size_t cols, size_t first,
            WeightBlock& block) {
  const size_t count = first < cols ? std::min<size_t>(kBlockColumns, cols - first) : 0;
  if (count == kBlockColumns && rows.size() == kBlockRows) {
    const float* begins[kBlockRows];
    for (size_t row = 0; row < rows.size(); ++row) begins[row] = rows[row].data();
    return encoders().gather(begins, static_cast<int64_t>(first), block);
  }
  block.columns = static_cast<int>(count);
  std::memset(block.values, 0, sizeof(block.values));
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < count; ++i) block.values[i][row] = rows[row][first + i];
  }
}

void encode(const WeightBlock& block, int which, Q8Group& group) {
  float scales[kBlockRows];
  encoders().largest(block, scales);
  for (int row = 0; row < kBlockRows; ++row) {
    group.scales[which][row] = float_to_f16(scales[row] / kMostQ8Code);
    scales[row] = f16_to_float(group.scales[which][row]);
    // Every code is that of 0 then.
    if (scales[row] == 0) scales[row] = kMaxQuantizedMagnitude;
  }
  encoders().q8_codes(block, scales, &group.codes[which == 0 ? 0 : kQuadsPerBlock]);
}

// Searches a block, and writes its scales and shifts.
template <typename Group>
BlockEncoding search(BlockSearch search, const WeightBlock& block, int which, Group& group) {
  BlockEncoding encoding;
  search(block, encoding);
  for (int row = 0; row < kBlockRows; ++row) {
    const int shift = encoding.shifts[row] / kShiftStep + (1 << (kShiftBits - 1));
    group.scales[which][row] = static_cast<uint16_t>(
        float_to_f16(std::bit_cast<float>(encoding.scales[row])) | static_cast<unsigned>(shift));
  }
  return encoding;
}

void encode(const WeightBlock& block, int which, Q6Group& group) {
  const BlockEncoding encoding = search(encoders().q6, block, which, group);
  for (int i = 0; i < kBlockColumns; ++i) {
    auto& lines = group.codes[which][i / kQuadColumns / kQ6Quads];
    const int place = i / kQuadColumns % kQ6Quads;
    for (int row = 0; row < kBlockRows; ++row) {
      const int code = i < block.columns ? encoding.codes[i][row] : kQ6Zero;
      if (place < kQ6Lines) {
        lines[place][row][i % kQuadColumns] = static_cast<uint8_t>(code);
        continue;
      }
      for (int line = 0; line < kQ6Lines; ++line) {
        const int two_bits = code >> (4 - 2 * line) & 3;
        uint8_t& byte = lines[line][row][i % kQuadColumns];
        byte = static_cast<uint8_t>(byte | two_bits << kQ6CodeBits);
      }
    }
  }
}

void encode(const WeightBlock& block, int which, Q4Group& group) {
  const BlockEncoding encoding = search(encoders().q4, block, which, group);
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
  WeightBlock block;
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

const BlockEncoders* runnable_encoders(int number) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && number-- == 0) {
    return &avx512::block_encoders();
  }
  if (__builtin_cpu_supports("avx2") && number-- == 0) return &avx2::block_encoders();
#endif
  return number == 0 ? &generic::block_encoders() : nullptr;
}

bool is_quantizable(std::span<const float> values) {
  return encoders().are_within(values.data(), static_cast<int64_t>(values.size()),
                               kMaxQuantizedMagnitude);
}

void quantize_panel(const PackedLayout& layout, std::span<const std::span<const float>> rows,
                    std::span<std::byte> out) {
  TRTMC_CHECK(rows.size() <= size_t{kBlockRows} && out.size() == layout.panel_bytes(),
              "not one panel");
  switch (layout.dtype) {
    case DType::kQ8:
      return quantize<Q8Group>(layout, rows, out.data());
    case DType::kQ6:
      return quantize<Q6Group>(layout, rows, out.data());
    case DType::kQ4:
      return quantize<Q4Group>(layout, rows, out.data());
    default:
      TRTMC_CHECK(false, "not a quantised type");
  }
}

}  // namespace trtmc
