#include "base/utf8.h"

#include <gtest/gtest.h>

namespace trtmc {
namespace {

TEST(Utf8, DecodesTheFirstAndLastCodePointOfEachLength) {
  const std::pair<std::string, char32_t> cases[] = {
      {std::string(1, '\0'), 0},
      {"\x7f", 0x7F},
      {"\xC2\x80", 0x80},
      {"\xDF\xBF", 0x7FF},
      {"\xE0\xA0\x80", 0x800},
      {"\xED\x9F\xBF", 0xD7FF},
      {"\xEE\x80\x80", 0xE000},
      {"\xEF\xBF\xBF", 0xFFFF},
      {"\xF0\x90\x80\x80", 0x10000},
      {"\xF4\x8F\xBF\xBF", 0x10FFFF},
  };
  for (const auto& [bytes, value] : cases) {
    const auto decoded = decode_utf8(bytes);
    ASSERT_TRUE(decoded) << static_cast<uint32_t>(value);
    EXPECT_EQ(decoded->value, value);
    EXPECT_EQ(static_cast<size_t>(decoded->length), bytes.size());
    std::string again;
    append_utf8(again, value);
    EXPECT_EQ(again, bytes);
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndWhatIsTooLarge) {
  for (const char* bytes :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80", "\xC2", "\xE2\x82"}) {
    EXPECT_FALSE(decode_utf8(bytes));
    EXPECT_EQ(find_invalid_utf8(std::string("ab") + bytes), 2u);
  }
  EXPECT_FALSE(find_invalid_utf8("plain, é, 漢, 😀"));
}

TEST(Utf8, CountsOnlyATailThatCanStillBecomeACodePoint) {
  EXPECT_EQ(incomplete_utf8_tail(""), 0u);
  EXPECT_EQ(incomplete_utf8_tail("abc"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("a\xC3"), 1u);
  EXPECT_EQ(incomplete_utf8_tail("a\xE2\x82"), 2u);
  EXPECT_EQ(incomplete_utf8_tail("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_utf8_tail("a\xF0\x9F\x98\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("a\xED\xA0"), 0u);  // A surrogate: no continuation saves it.
  EXPECT_EQ(incomplete_utf8_tail("\x80\x80\x80\x80"), 0u);
}

// Expected values: bytes.decode("utf-8", errors="replace") of CPython 3.11.
TEST(Utf8, ReplacesMaximalInvalidPartsAsPythonDoes) {
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82"), "a\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x41"), "\uFFFDA");
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("é\xFF漢"), "é\uFFFD漢");
}

}  // namespace
}  // namespace trtmc
