#include "cli/option_values.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/error.h"

namespace trtmc {
namespace {

template <typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(OptionValues, SizesTakeBinaryUnits) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("3KiB"), 3u * 1024);
  EXPECT_EQ(parse_bytes("512 MiB"), 536870912u);
  EXPECT_EQ(parse_bytes("8GiB"), 8589934592u);
  EXPECT_EQ(parse_bytes("1TiB"), uint64_t{1} << 40);
}

TEST(OptionValues, SizesThatAreNoneAreRefused) {
  for (const char* text : {"", "GiB", "1.5GiB", "-1", "8GB", "8gib", "8  GiB", " 8", "0x10"}) {
    EXPECT_NE(message_of([&] { parse_bytes(text); }), "no error") << text;
  }
}

TEST(OptionValues, ASizeThatOverflowsIsRefused) {
  EXPECT_EQ(parse_bytes("16777215TiB"), 16777215ull << 40);
  EXPECT_EQ(message_of([] { parse_bytes("16777216TiB"); }),
            "\"16777216TiB\", expected less than 16 EiB");
}

TEST(OptionValues, IntegersAreWholeAndInRange) {
  EXPECT_EQ(parse_integer("-5", -10, 10), -5);
  EXPECT_EQ(message_of([] { parse_integer("0", 1, 1024); }),
            "\"0\", expected a whole number from 1 to 1024");
  EXPECT_EQ(message_of([] { parse_integer("12x", 1, std::numeric_limits<int64_t>::max()); }),
            "\"12x\", expected a whole number from 1 on");
  EXPECT_EQ(message_of([] { parse_integer("99999999999", 1, 2147483647); }),
            "\"99999999999\", expected a whole number from 1 to 2147483647");
  EXPECT_NE(message_of([] { parse_integer("99999999999999999999", 0, 5); }), "no error");
  EXPECT_EQ(parse_unsigned("18446744073709551615"), std::numeric_limits<uint64_t>::max());
}

TEST(OptionValues, NumbersAreFinite) {
  EXPECT_EQ(parse_number("0.25", 0, 1), 0.25);
  EXPECT_EQ(parse_number("1e-3", 0, 1), 0.001);
  for (const char* text : {"nan", "inf", "0,5", "", "1.5", "-0.1", "0.5 "}) {
    EXPECT_EQ(message_of([&] { parse_number(text, 0, 1); }),
              "\"" + std::string(text) + "\", expected a number from 0 to 1");
  }
}

TEST(OptionValues, ASlipOfAThirdOfTheLettersIsGuessed) {
  const std::vector<std::string> names = {"build", "run", "chat", "tokenize"};
  EXPECT_EQ(nearest_name("biuld", names), "build");  // Neighbours swapped: one slip.
  EXPECT_EQ(nearest_name("buld", names), "build");
  EXPECT_EQ(nearest_name("biudd", names), "");  // Two of five letters.
  EXPECT_EQ(nearest_name("tokenise", names), "tokenize");
  EXPECT_EQ(nearest_name("xyz", names), "");
}

TEST(OptionValues, SizesAreShownWithThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(37769928), "37.8 MB");
  EXPECT_EQ(format_bytes(999'999), "1.00 MB");
  EXPECT_EQ(format_bytes(6'150'000'000), "6.15 GB");
  EXPECT_EQ(format_count(3'075'098'624), "3.08 B");
}

}  // namespace
}  // namespace trtmc
