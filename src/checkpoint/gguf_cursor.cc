#include "checkpoint/gguf_cursor.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"

namespace trtmc {
namespace {

[[noreturn]] void corrupt(size_t position, std::string_view what) {
  throw Error(ErrorCode::kCorrupt, fmt::format("byte {}: {}", position, what));
}

// The least bytes that an element takes; a string's are its length.
uint64_t least_bytes(GgufValueType type) {
  switch (type) {
    case GgufValueType::kUint8:
    case GgufValueType::kInt8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kUint16:
    case GgufValueType::kInt16:
      return 2;
    case GgufValueType::kUint32:
    case GgufValueType::kInt32:
    case GgufValueType::kFloat32:
      return 4;
    case GgufValueType::kString:
    case GgufValueType::kArray:
    case GgufValueType::kUint64:
    case GgufValueType::kInt64:
    case GgufValueType::kFloat64:
      return 8;
  }
  TRTMC_CHECK(false, "not a type");
}

}  // namespace

std::span<const std::byte> GgufCursor::take(uint64_t count) {
  if (count > remaining()) {
    corrupt(position_, fmt::format("{} bytes expected, the file has {}", count, remaining()));
  }
  if (count > kMaxHeaderBytes || position_ + count > kMaxHeaderBytes) {
    corrupt(position_, fmt::format("the header goes on for {} bytes, expected at most {} of it",
                                   count, kMaxHeaderBytes));
  }
  const std::span<const std::byte> taken = bytes_.subspan(position_, count);
  position_ += count;
  return taken;
}

std::string_view GgufCursor::string() { return as_text(take(number<uint64_t>())); }

GgufValueType GgufCursor::type() {
  const size_t at = position_;
  const auto number = this->number<uint32_t>();
  if (number > static_cast<uint32_t>(GgufValueType::kFloat64)) {
    corrupt(at, fmt::format("value type {}, expected 0 to {}", number,
                            static_cast<uint32_t>(GgufValueType::kFloat64)));
  }
  return static_cast<GgufValueType>(number);
}

GgufValue GgufCursor::scalar(GgufValueType type) {
  switch (type) {
    case GgufValueType::kUint8:
      return int64_t{number<uint8_t>()};
    case GgufValueType::kInt8:
      return int64_t{number<int8_t>()};
    case GgufValueType::kUint16:
      return int64_t{number<uint16_t>()};
    case GgufValueType::kInt16:
      return int64_t{number<int16_t>()};
    case GgufValueType::kUint32:
      return int64_t{number<uint32_t>()};
    case GgufValueType::kInt32:
      return int64_t{number<int32_t>()};
    case GgufValueType::kFloat32:
      return double{number<float>()};
    case GgufValueType::kBool: {
      const auto flag = number<uint8_t>();
      if (flag > 1) corrupt(position_ - 1, fmt::format("{} is no flag, expected 0 or 1", flag));
      return flag == 1;
    }
    case GgufValueType::kString:
      return string();
    case GgufValueType::kUint64: {
      const auto value = number<uint64_t>();
      if (value > INT64_MAX) return static_cast<double>(value);
      return static_cast<int64_t>(value);
    }
    case GgufValueType::kInt64:
      return number<int64_t>();
    case GgufValueType::kFloat64:
      return number<double>();
    case GgufValueType::kArray:
      break;
  }
  TRTMC_CHECK(false, "an array is no scalar");
}

GgufArray GgufCursor::array() {
  const size_t at = position_;
  const GgufValueType element = type();
  if (element == GgufValueType::kArray) corrupt(at, "an array of arrays, which is not supported");
  const auto count = number<uint64_t>();
  if (count > remaining() / least_bytes(element)) {
    corrupt(at, fmt::format("an array of {} elements in {} bytes", count, remaining()));
  }
  const size_t begin = position_;
  for (uint64_t i = 0; i < count; ++i) scalar(element);
  return {element, count, bytes_.subspan(begin, position_ - begin)};
}

GgufValue GgufCursor::value(GgufValueType type) {
  if (type == GgufValueType::kArray) return array();
  return scalar(type);
}

}  // namespace trtmc
