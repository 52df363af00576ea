#include "graph/protobuf_message.h"

#include <gtest/gtest.h>

namespace trtmc {
namespace {

using namespace std::string_literals;

// The examples of protobuf.dev, "Encoding".
TEST(ProtobufMessage, IsAsInTheExamplesOfItsDefinition) {
  ProtobufMessage number;
  number.integer(1, 150);
  EXPECT_EQ(number.encoded(), "\x08\x96\x01");
  ProtobufMessage text;
  text.bytes(2, "testing");
  EXPECT_EQ(text.encoded(), "\x12\x07testing");
  ProtobufMessage outer;
  outer.message(3, number);
  EXPECT_EQ(outer.encoded(), "\x1a\x03\x08\x96\x01");
}

// "-2": ten bytes, as a two's complement of 64 bits.
TEST(ProtobufMessage, WritesNegativeNumbersInTenBytes) {
  ProtobufMessage message;
  message.integer(1, -2);
  EXPECT_EQ(message.encoded(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(ProtobufMessage, WritesZeroAndFieldsAbove15) {
  ProtobufMessage message;
  message.integer(20, 0);  // 20 << 3 is 160: 0xa0 0x01.
  EXPECT_EQ(message.encoded(), "\xa0\x01\0"s);
}

TEST(ProtobufMessage, WritesFloatsLittleEndian) {
  ProtobufMessage message;
  message.real(2, 1.0F);  // 0x3f800000; tag 2 << 3 | 5.
  EXPECT_EQ(message.encoded(), "\x15\0\0\x80\x3f"s);
}

}  // namespace
}  // namespace trtmc
