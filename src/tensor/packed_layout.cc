#include "tensor/packed_layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "tensor/block_formats.h"

namespace trtmc {
namespace {

constexpr size_t kRows = PackedLayout::kPanelRows;

// Columns packed at a time: 16 rows of them stay in the first-level cache.
constexpr size_t kChunkColumns = 256;
// Rows of a checkpoint often lie a multiple of 4096 bytes apart, so that their columns compete for
// the same cache lines; their copies here do not, thanks to the odd distance.
constexpr size_t kChunkStride = kChunkColumns + 16;

// Some columns of a panel, row by row, elements as stored. What no row fills stays zero.
template <typename Element>
using Chunk = std::array<std::array<Element, kChunkStride>, kRows>;

// Puts the 16 rows of each 16-bit group side by side. out: [groups, 16].
void interleave_halves(const Chunk<uint16_t>& chunk, size_t groups, std::byte* out) {
  for (size_t group = 0; group < groups; ++group) {
    for (size_t row = 0; row < kRows; ++row, out += 2) std::memcpy(out, &chunk[row][group], 2);
  }
}

// Four groups of 32 bits, which every 128-bit unit moves at once.
using Four = uint32_t __attribute__((vector_size(16)));

// The same for 32-bit groups, as transpositions of 4 x 4.
template <typename Element>
void interleave_words(const Chunk<Element>& chunk, size_t groups, std::byte* out) {
  for (size_t group = 0; group < groups; group += 4) {
    for (size_t row = 0; row < kRows; row += 4) {
      Four a[4];
      for (size_t i = 0; i < 4; ++i) {
        std::memcpy(&a[i], reinterpret_cast<const std::byte*>(chunk[row + i].data()) + group * 4,
                    16);
      }
      const Four low01 = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5);
      const Four high01 = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7);
      const Four low23 = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
      const Four high23 = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
      const Four columns[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                               __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                               __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                               __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (size_t i = 0; i < std::min<size_t>(4, groups - group); ++i) {
        std::memcpy(out + ((group + i) * kRows + row) * 4, &columns[i], 16);
      }
    }
  }
}

// Fills chunk after chunk by fill(row, first column, elements) and interleaves it.
template <typename Group, typename Element, typename Fill>
void pack_columns(const PackedLayout& layout, size_t num_rows, std::byte* out, Fill fill) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): one where a group is a single element.
  constexpr size_t kGroupColumns = sizeof(Group) / sizeof(Element);
  Chunk<Element> chunk{};
  const auto cols = static_cast<size_t>(layout.cols);
  for (size_t first = 0; first < cols; first += kChunkColumns) {
    const size_t count = std::min(kChunkColumns, cols - first);
    for (size_t row = 0; row < num_rows; ++row) {
      fill(row, first, std::span(chunk[row]).first(count));
      chunk[row][count] = 0;  // The other half of a last group that is not whole.
    }
    const size_t groups = (count + kGroupColumns - 1) / kGroupColumns;
    if constexpr (sizeof(Group) == 4) {
      interleave_words(chunk, groups, out);
    } else {
      interleave_halves(chunk, groups, out);
    }
    out += groups * kRows * sizeof(Group);
  }
}

// pack_columns with the types of `layout`. Fill takes a span of float or of uint16_t.
template <typename Fill>
void pack(const PackedLayout& layout, size_t num_rows, std::span<std::byte> out, Fill fill) {
  TRTMC_CHECK(num_rows <= kRows && out.size() == layout.panel_bytes(), "not one panel");
  switch (layout.dtype) {
    case DType::kF32:
      return pack_columns<uint32_t, float>(layout, num_rows, out.data(), fill);
    case DType::kF16:
      return pack_columns<uint16_t, uint16_t>(layout, num_rows, out.data(), fill);
    case DType::kBF16:
      return pack_columns<uint32_t, uint16_t>(layout, num_rows, out.data(), fill);
    default:
      break;
  }
  TRTMC_CHECK(false, "quantised types are packed by quantize_panel");
}

template <typename Element, typename Convert>
void unpack(const PackedLayout& layout, std::span<const std::byte> packed, int64_t row,
            std::span<float> out, Convert convert) {
  const int64_t group = layout.k_group();
  const std::byte* from =
      packed.data() + static_cast<size_t>(layout.index(row, 0)) * sizeof(Element);
  for (int64_t col = 0; col < layout.cols; ++col) {
    Element element;
    const int64_t offset = col / group * group * PackedLayout::kPanelRows + col % group;
    std::memcpy(&element, from + static_cast<size_t>(offset) * sizeof(Element), sizeof(Element));
    out[static_cast<size_t>(col)] = convert(element);
  }
}

int code_of(const Q4Group& group, int64_t row, int64_t col) {
  const int codes = group.codes[col / kQuadColumns % kQuadsPerBlock][row][col % kQuadColumns];
  return col / kBlockColumns == 0 ? codes & 15 : codes >> 4;
}

int code_of(const Q8Group& group, int64_t row, int64_t col) {
  return group.codes[col / kQuadColumns][row][col % kQuadColumns] - kQ8Zero;
}

int code_of(const Q6Group& group, int64_t row, int64_t col) {
  const int64_t quad = col / kQuadColumns % kQuadsPerBlock;
  const auto& lines = group.codes[col / kBlockColumns][quad / kQ6Quads];
  const auto byte = [&](int64_t line) { return lines[line][row][col % kQuadColumns]; };
  const int64_t place = quad % kQ6Quads;
  const int code = place < kQ6Lines ? byte(place) & kQ6MostCode
                                    : byte(0) >> kQ6CodeBits << 4 | byte(1) >> kQ6CodeBits << 2 |
                                          byte(2) >> kQ6CodeBits;
  return code - kQ6Zero;
}

float scale_of(const Q8Group& group, int64_t row, int64_t block) {
  return f16_to_float(group.scales[block][row]);
}
// Of q4 and q6, whose scales give bits to a shift.
template <typename Group>
float scale_of(const Group& group, int64_t row, int64_t block) {
  return f16_to_float(shifted_scale_bits(group.scales[block][row]));
}

int zero_of(const Q8Group& /*group*/, int64_t /*row*/, int64_t /*block*/) { return 0; }
template <typename Group>
int zero_of(const Group& group, int64_t row, int64_t block) {
  return -scale_shift(group.scales[block][row]);
}

template <typename Group>
int number_of(const Group& /*group*/, int code) {
  return code;
}
int number_of(const Q4Group& /*group*/, int code) { return kQ4Grid[code]; }

template <typename Group>
float decode(const Group& group, int64_t row, int64_t col) {
  const int64_t block = col / kBlockColumns;
  const int number = number_of(group, code_of(group, row, col));
  return scale_of(group, row, block) * static_cast<float>(number - zero_of(group, row, block));
}

// Fills `out` with number(group, row of the panel, i) for each group of the row and each i below
// group_numbers.
template <typename Group, typename Number>
void gather_row(const PackedLayout& layout, std::span<const std::byte> packed, int64_t row,
                int64_t group_numbers, std::span<float> out, Number number) {
  const std::byte* from =
      packed.data() + static_cast<size_t>(row / PackedLayout::kPanelRows) * layout.panel_bytes();
  for (size_t at = 0; at < out.size(); from += sizeof(Group)) {
    Group group;
    std::memcpy(&group, from, sizeof(group));
    for (int64_t i = 0; i < group_numbers && at < out.size(); ++i) {
      out[at++] = static_cast<float>(number(group, row % PackedLayout::kPanelRows, i));
    }
  }
}

template <typename Group>
void gather_parts(const PackedLayout& layout, std::span<const std::byte> packed, int64_t row,
                  const QuantizedRow& out) {
  constexpr int64_t kGroupBlocks = kGroupColumns / kBlockColumns;
  const auto gather = [&](int64_t group_numbers, std::span<float> part, auto number) {
    gather_row<Group>(layout, packed, row, group_numbers, part, number);
  };
  gather(kGroupColumns, out.codes, [](const auto&... at) { return code_of(at...); });
  gather(kGroupBlocks, out.scales, [](const auto&... at) { return scale_of(at...); });
  gather(kGroupBlocks, out.zeros, [](const auto&... at) { return zero_of(at...); });
}

template <typename Group>
void decode_row(const PackedLayout& layout, std::span<const std::byte> packed, int64_t row,
                std::span<float> out) {
  gather_row<Group>(layout, packed, row, kGroupColumns, out,
                    [](const auto&... at) { return decode(at...); });
}

}  // namespace

int64_t PackedLayout::k_group() const {
  if (is_quantized(dtype)) return kGroupColumns;
  return dtype == DType::kBF16 ? 2 : 1;
}

size_t PackedLayout::group_bytes() const {
  if (dtype == DType::kQ8) return sizeof(Q8Group);
  if (dtype == DType::kQ6) return sizeof(Q6Group);
  if (dtype == DType::kQ4) return sizeof(Q4Group);
  return static_cast<size_t>(kPanelRows * k_group()) * element_bytes(dtype);
}

int64_t PackedLayout::index(int64_t row, int64_t col) const {
  const int64_t group = k_group();
  return row / kPanelRows * kPanelRows * padded_cols() + col / group * kPanelRows * group +
         row % kPanelRows * group + col % group;
}

void pack_panel(const PackedLayout& layout, std::span<const std::span<const float>> rows,
                std::span<std::byte> out) {
  pack(layout, rows.size(), out, [&](size_t row, size_t first, auto elements) {
    const std::span<const float> from = rows[row].subspan(first, elements.size());
    if constexpr (std::is_same_v<typename decltype(elements)::value_type, float>) {
      std::copy(from.begin(), from.end(), elements.begin());
    } else {
      const auto convert = layout.dtype == DType::kF16 ? float_to_f16 : float_to_bf16;
      std::transform(from.begin(), from.end(), elements.begin(), convert);
    }
  });
}

void pack_panel_bytes(const PackedLayout& layout, std::span<const std::span<const std::byte>> rows,
                      std::span<std::byte> out) {
  pack(layout, rows.size(), out, [&](size_t row, size_t first, auto elements) {
    const auto from = rows[row].subspan(first * sizeof(elements[0]), elements.size_bytes());
    std::memcpy(elements.data(), from.data(), from.size());
  });
}

void unpack_row(const PackedLayout& layout, std::span<const std::byte> packed, int64_t row,
                std::span<float> out) {
  TRTMC_CHECK(row >= 0 && row < layout.rows && packed.size() == layout.total_bytes() &&
                  out.size() == static_cast<size_t>(layout.cols),
              "not a row of this matrix");
  switch (layout.dtype) {
    case DType::kF32:
      return unpack<float>(layout, packed, row, out, [](float value) { return value; });
    case DType::kF16:
      return unpack<uint16_t>(layout, packed, row, out, f16_to_float);
    case DType::kBF16:
      return unpack<uint16_t>(layout, packed, row, out, bf16_to_float);
    case DType::kQ8:
      return decode_row<Q8Group>(layout, packed, row, out);
    case DType::kQ6:
      return decode_row<Q6Group>(layout, packed, row, out);
    case DType::kQ4:
      return decode_row<Q4Group>(layout, packed, row, out);
  }
}

void unpack_quantized_row(const PackedLayout& layout, std::span<const std::byte> packed,
                          int64_t row, const QuantizedRow& out) {
  TRTMC_CHECK(row >= 0 && row < layout.rows && packed.size() == layout.total_bytes(),
              "not a row of this matrix");
  switch (layout.dtype) {
    case DType::kQ8:
      return gather_parts<Q8Group>(layout, packed, row, out);
    case DType::kQ6:
      return gather_parts<Q6Group>(layout, packed, row, out);
    case DType::kQ4:
      return gather_parts<Q4Group>(layout, packed, row, out);
    default:
      break;
  }
  TRTMC_CHECK(false, "only quantised types have parts");
}

void read_row(const WeightView& weight, int64_t row, std::span<float> out) {
  if (weight.layout == TensorLayout::kPanels16) {
    unpack_row(weight.packed(), weight.bytes, row, out);
  } else {
    read_floats({weight.dtype, weight.shape, weight.bytes}, row * static_cast<int64_t>(out.size()),
                out);
  }
}

std::vector<std::byte> pack_plain(const WeightView& weight) {
  const PackedLayout layout = weight.packed();
  const TensorView plain{weight.dtype, weight.shape, weight.bytes};
  std::vector<std::byte> packed(layout.total_bytes());
  std::vector<float> values(static_cast<size_t>(PackedLayout::kPanelRows * layout.cols));
  for (int64_t panel = 0; panel < layout.num_panels(); ++panel) {
    const int64_t first = panel * PackedLayout::kPanelRows;
    const int64_t count = std::min(PackedLayout::kPanelRows, layout.rows - first);
    std::vector<std::span<const float>> rows;
    for (int64_t r = 0; r < count; ++r) {
      const auto row = std::span(values).subspan(static_cast<size_t>(r * layout.cols),
                                                 static_cast<size_t>(layout.cols));
      read_floats(plain, (first + r) * layout.cols, row);
      rows.emplace_back(row);
    }
    pack_panel(layout, rows,
               std::span(packed).subspan(static_cast<size_t>(panel) * layout.panel_bytes(),
                                         layout.panel_bytes()));
  }
  return packed;
}

}  // namespace trtmc
