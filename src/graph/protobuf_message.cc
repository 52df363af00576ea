#include "graph/protobuf_message.h"

#include <bit>

namespace trtmc {
namespace {

constexpr int kVarint = 0;
constexpr int kLengthDelimited = 2;
constexpr int kFixed32 = 5;

}  // namespace

// Seven bits a byte, the lowest first; the top bit says that more follow.
void ProtobufMessage::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) encoded_ += static_cast<char>((value & 0x7f) | 0x80);
  encoded_ += static_cast<char>(value);
}

void ProtobufMessage::tag(int field, int wire_type) {
  varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
}

void ProtobufMessage::integer(int field, int64_t value) {
  tag(field, kVarint);
  varint(static_cast<uint64_t>(value));
}

void ProtobufMessage::real(int field, float value) {
  tag(field, kFixed32);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) encoded_ += static_cast<char>(bits >> shift & 0xff);
}

void ProtobufMessage::bytes(int field, std::string_view value) {
  tag(field, kLengthDelimited);
  varint(value.size());
  encoded_ += value;
}

}  // namespace trtmc
