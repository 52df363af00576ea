#include "graph/weight_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace trtmc {
namespace {

constexpr size_t kPieceBytes = size_t{128} << 20;
constexpr int64_t kStripRows = PackedLayout::kPanelRows;  // That a thread reads at a time.

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
  return type == ElementType::kFloat16    ? 65504.0F
         : type == ElementType::kBFloat16 ? bf16_to_float(0x7f7f)
                                          : std::numeric_limits<float>::max();
}

// Rows [first, first + count) of a weight, as float.
struct Strip {
  int64_t first, count, cols;
  std::vector<float> values;

  std::span<float> row(int64_t r) {
    return std::span(values).subspan(static_cast<size_t>(r * cols), static_cast<size_t>(cols));
  }
};

// One pass over a weight: strips of rows, each read by one thread, placed into `piece`.
class Pass {
 public:
  Pass(const WeightView& weight, ElementType type, ThreadPool& pool)
      : weight_(weight),
        rows_(weight.shape.size() == 1 ? 1 : weight.shape[0]),
        cols_(weight.shape.back()),
        limit_(largest_finite(type)),
        type_(type),
        pool_(pool) {}

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  // The largest value that is finite here and not in the type; 0: there was none.
  float beyond() const { return beyond_; }

  // piece: [count, cols] in the type.
  void place_rows(int64_t first, int64_t count, std::span<std::byte> piece) {
    for_each_strip(first, count, [&](Strip& strip, auto convert) {
      using Element = decltype(convert(0.0F));
      auto* out =
          piece.data() + static_cast<size_t>((strip.first - first) * cols_) * sizeof(Element);
      for (size_t i = 0; i < strip.values.size(); ++i) {
        const Element element = convert(strip.values[i]);
        std::memcpy(out + i * sizeof(Element), &element, sizeof(Element));
      }
    });
  }

  // piece: [count, rows] in the type, for columns [first, first + count).
  void place_columns(int64_t first, int64_t count, std::span<std::byte> piece) {
    for_each_strip(0, rows_, [&](Strip& strip, auto convert) {
      using Element = decltype(convert(0.0F));
      for (int64_t col = 0; col < count; ++col) {
        auto* out = piece.data() + static_cast<size_t>(col * rows_ + strip.first) * sizeof(Element);
        for (int64_t r = 0; r < strip.count; ++r) {
          const Element element = convert(strip.row(r)[static_cast<size_t>(first + col)]);
          std::memcpy(out + static_cast<size_t>(r) * sizeof(Element), &element, sizeof(Element));
        }
      }
    });
  }

 private:
  template <typename Place>
  void for_each_strip(int64_t first, int64_t count, Place place) {
    const int64_t num_strips = (count + kStripRows - 1) / kStripRows;
    std::vector<Strip> strips(static_cast<size_t>(pool_.num_threads()));
    with_conversion(type_, [&](auto convert) {
      pool_.share(num_strips, [&](int64_t index, int thread) {
        Strip& strip = strips[static_cast<size_t>(thread)];
        strip.first = first + index * kStripRows;
        strip.count = std::min(kStripRows, first + count - strip.first);
        strip.cols = cols_;
        strip.values.resize(static_cast<size_t>(strip.count * cols_));
        for (int64_t r = 0; r < strip.count; ++r) {
          read_row(weight_, strip.first + r, strip.row(r));
        }
        note_beyond(strip.values);
        place(strip, convert);
      });
    });
  }

  void note_beyond(std::span<const float> values) {
    float largest = 0;
    for (const float value : values) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    }
    if (largest > limit_) beyond_ = largest;
  }

  const WeightView& weight_;
  int64_t rows_, cols_;
  float limit_;
  ElementType type_;
  ThreadPool& pool_;
  std::atomic<float> beyond_ = 0;
};

}  // namespace

size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return 2;
    case ElementType::kInt64:
      return 8;
    case ElementType::kBool:
      return 1;
  }
  TRTMC_CHECK(false, "not an element type");
}

WeightStream::WeightStream(const Bundle& bundle, ThreadPool& pool) : bundle_(bundle), pool_(pool) {}

void WeightStream::read(const TensorKey& key, ElementType type, MatrixOrder order,
                        TakePiece take) const {
  const WeightView weight = bundle_.weight(key);
  Pass pass(weight, type, pool_);
  const bool by_rows = order == MatrixOrder::kByRows;
  const int64_t lines = by_rows ? pass.rows() : pass.cols();
  const size_t line_bytes =
      static_cast<size_t>(by_rows ? pass.cols() : pass.rows()) * element_bytes(type);
  const auto lines_a_piece =
      std::clamp(static_cast<int64_t>(kPieceBytes / line_bytes), int64_t{1}, lines);
  std::vector<std::byte> piece(static_cast<size_t>(lines_a_piece) * line_bytes);
  for (int64_t first = 0; first < lines; first += lines_a_piece) {
    const int64_t count = std::min(lines_a_piece, lines - first);
    const auto part = std::span(piece).first(static_cast<size_t>(count) * line_bytes);
    if (by_rows) {
      pass.place_rows(first, count, part);
    } else {
      pass.place_columns(first, count, part);
    }
    if (pass.beyond() != 0) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("{}: holds {:g}, and {} ends at {:g}", to_string(key), pass.beyond(),
                              element_type_name(type), largest_finite(type)),
                  "choose bf16 or f32, which hold it");
    }
    take(part);
  }
  bundle_.release(weight.bytes);
}

}  // namespace trtmc
