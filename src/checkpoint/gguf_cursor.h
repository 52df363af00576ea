// Reads a GGUF header front to back and never past its end. Private to this folder.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "checkpoint/gguf_metadata.h"

namespace trtmc {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

// Everything throws kCorrupt naming the byte where the file is too short, or the header longer than
// kMaxHeaderBytes.
class GgufCursor {
 public:
  // So that a hostile file takes neither minutes nor memory without bounds. That of a vocabulary of
  // 262 144 tokens has some 20 MB.
  static constexpr size_t kMaxHeaderBytes = size_t{128} << 20;

  explicit GgufCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  // An integer or a float as it lies there.
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  // A u64 length and that many bytes, which need not be UTF-8.
  std::string_view string();
  // Of any type but kArray.
  GgufValue scalar(GgufValueType type);
  // A value of the type, its elements passed over.
  GgufValue value(GgufValueType type);
  // The u32 of a type; throws for one that the format does not have.
  GgufValueType type();

 private:
  std::span<const std::byte> take(uint64_t count);
  GgufArray array();

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace trtmc
