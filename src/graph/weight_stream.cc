#include "graph/weight_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "tensor/block_formats.h"

namespace trtmc {
namespace {

using TakePiece = WeightStream::TakePiece;

constexpr size_t kPieceBytes = size_t{128} << 20;
constexpr int64_t kStripRows = PackedLayout::kPanelRows;  // That a thread reads at a time.

// A matrix of numbers. `read` gives a row [cols]; several threads call it at once.
struct Rows {
  int64_t rows, cols;
  std::function<void(int64_t row, std::span<float> out)> read;
};

// Puts strips of rows, converted to elements, to their places in a piece of the whole matrix.
template <typename Convert>
class Pieces {
 public:
  using Element = std::invoke_result_t<Convert, float>;

  Pieces(const Rows& rows, Convert convert, ThreadPool& pool)
      : rows_(rows), convert_(convert), pool_(pool) {}

  void hand_out(MatrixOrder order, TakePiece take) {
    const bool by_rows = order == MatrixOrder::kByRows;
    const int64_t lines = by_rows ? rows_.rows : rows_.cols;
    const auto width = static_cast<size_t>(by_rows ? rows_.cols : rows_.rows);
    const auto step = std::clamp(static_cast<int64_t>(kPieceBytes / (width * sizeof(Element))),
                                 int64_t{1}, lines);
    std::vector<Element> piece(static_cast<size_t>(step) * width);
    for (int64_t first = 0; first < lines; first += step) {
      const int64_t count = std::min(step, lines - first);
      if (by_rows) {
        place_rows(first, count, piece);
      } else {
        place_columns(first, count, piece);
      }
      take(std::as_bytes(std::span(piece).first(static_cast<size_t>(count) * width)));
    }
  }

 private:
  // piece: rows [first, first + count), as [count, cols].
  void place_rows(int64_t first, int64_t count, std::span<Element> piece) {
    for_each_strip(first, count, [&](int64_t begin, std::span<const float> values) {
      auto out = piece.begin() + (begin - first) * rows_.cols;
      for (const float value : values) *out++ = convert_(value);
    });
  }

  // piece: columns [first, first + count), as [count, rows].
  void place_columns(int64_t first, int64_t count, std::span<Element> piece) {
    for_each_strip(0, rows_.rows, [&](int64_t begin, std::span<const float> values) {
      const int64_t height = static_cast<int64_t>(values.size()) / rows_.cols;
      for (int64_t col = 0; col < count; ++col) {
        auto out = piece.begin() + col * rows_.rows + begin;
        for (int64_t row = 0; row < height; ++row) {
          *out++ = convert_(values[static_cast<size_t>(row * rows_.cols + first + col)]);
        }
      }
    });
  }

  // place(first row of the strip, its values)
  template <typename Place>
  void for_each_strip(int64_t first, int64_t count, Place place) {
    std::vector<std::vector<float>> strips(static_cast<size_t>(pool_.num_threads()));
    const auto width = static_cast<size_t>(rows_.cols);
    pool_.share((count + kStripRows - 1) / kStripRows, [&](int64_t index, int thread) {
      const int64_t begin = first + index * kStripRows;
      const int64_t height = std::min(kStripRows, first + count - begin);
      std::vector<float>& values = strips[static_cast<size_t>(thread)];
      values.resize(static_cast<size_t>(height) * width);
      for (int64_t row = 0; row < height; ++row) {
        rows_.read(begin + row, std::span(values).subspan(static_cast<size_t>(row) * width, width));
      }
      place(begin, std::span<const float>(values));
    });
  }

  const Rows& rows_;
  Convert convert_;
  ThreadPool& pool_;
};

// body(convert), convert: a float as an element of `type`.
template <typename Body>
void with_conversion(ElementType type, Body body) {
  switch (type) {
    case ElementType::kFloat32:
      return body([](float value) { return value; });
    case ElementType::kFloat16:
      return body([](float value) { return float_to_f16(value); });
    case ElementType::kBFloat16:
      return body([](float value) { return float_to_bf16(value); });
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kBool:
      break;
  }
  TRTMC_CHECK(false, "weights have a float type");
}

float largest_finite(ElementType type) {
  if (type == ElementType::kFloat16) return 65504;
  return type == ElementType::kBFloat16 ? bf16_to_float(0x7f7f) : std::numeric_limits<float>::max();
}

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

// Two numbers of 4 bits a byte, the first one in the low half.
class NibblePacker {
 public:
  explicit NibblePacker(TakePiece take) : take_(take) {}

  void add(std::span<const std::byte> codes) {
    packed_.clear();
    for (const std::byte code : codes) {
      if (half_) packed_.push_back(*half_ | code << 4);
      half_ = half_ ? std::nullopt : std::optional(code);
    }
    take_(packed_);
  }
  void finish() {
    if (half_) take_(std::span(&*half_, 1));
  }

 private:
  TakePiece take_;
  std::optional<std::byte> half_;
  std::vector<std::byte> packed_;
};

}  // namespace

WeightStream::WeightStream(const Bundle& bundle, ThreadPool& pool) : bundle_(bundle), pool_(pool) {}

void WeightStream::read(const TensorKey& key, ElementType type, MatrixOrder order,
                        TakePiece take) const {
  const WeightView weight = bundle_.weight(key);
  const float limit = largest_finite(type);
  std::atomic<float> beyond = 0;  // A value that the type does not have.
  const auto read = [&](int64_t row, std::span<float> out) {
    read_row(weight, row, out);
    if (const float largest = largest_magnitude(out); largest > limit) beyond = largest;
  };
  const int64_t num_rows = weight.shape.size() == 1 ? 1 : weight.shape[0];
  const Rows rows{num_rows, weight.shape.back(), read};
  with_conversion(type, [&](auto convert) {
    Pieces(rows, convert, pool_).hand_out(order, [&](std::span<const std::byte> piece) {
      if (beyond != 0) {
        throw Error(ErrorCode::kUnsupported,
                    fmt::format("{}: holds {:g}, and {} ends at {:g}", to_string(key),
                                beyond.load(), element_type_name(type), limit),
                    "choose bf16 or f32, which hold it");
      }
      bundle_.release(weight.bytes);
      take(piece);
    });
  });
}

void WeightStream::read_part(const TensorKey& key, QuantizedPart part, MatrixOrder order,
                             TakePiece take) const {
  const WeightView weight = bundle_.weight(key);
  TRTMC_CHECK(is_quantized(weight.dtype), "only quantised weights have parts");
  const auto read = [&](int64_t row, std::span<float> out) {
    unpack_quantized_row(weight.packed(), weight.bytes, row,
                         {.codes = part == QuantizedPart::kCodes ? out : std::span<float>(),
                          .scales = part == QuantizedPart::kScales ? out : std::span<float>(),
                          .zeros = part == QuantizedPart::kZeros ? out : std::span<float>()});
  };
  const int64_t cols = weight.shape[1];
  const int64_t blocks = (cols + kBlockColumns - 1) / kBlockColumns;
  const Rows rows{weight.shape[0], part == QuantizedPart::kCodes ? cols : blocks, read};
  if (part == QuantizedPart::kScales) {
    Pieces(
        rows, [](float value) { return value; }, pool_)
        .hand_out(order, take);
  } else if (part == QuantizedPart::kCodes && weight.dtype == DType::kQ4) {
    NibblePacker packer(take);
    Pieces(
        rows, [](float value) { return static_cast<uint8_t>(value); }, pool_)
        .hand_out(order, [&](std::span<const std::byte> piece) { packer.add(piece); });
    packer.finish();
  } else {
    Pieces(
        rows, [](float value) { return static_cast<int8_t>(value); }, pool_)
        .hand_out(order, take);
  }
  bundle_.release(weight.bytes);
}

}  // namespace trtmc
