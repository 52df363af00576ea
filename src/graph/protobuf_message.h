// A message in the wire format of Protocol Buffers (protobuf.dev, "Encoding"): what ONNX files are
// written in. Fields by number, in any order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trtmc {

class ProtobufMessage {
 public:
  // Of type int32, int64, bool or an enumeration.
  void integer(int field, int64_t value);
  void real(int field, float value);
  // Of type string or bytes.
  void bytes(int field, std::string_view value);
  void message(int field, const ProtobufMessage& value) { bytes(field, value.encoded_); }

  const std::string& encoded() const { return encoded_; }

 private:
  void varint(uint64_t value);
  void tag(int field, int wire_type);

  std::string encoded_;
};

}  // namespace trtmc
