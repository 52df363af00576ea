#include "text/jinja_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "text/jinja_limits.h"
#include "text/jinja_repr.h"
#include "text/jinja_strftime.h"
#include "text/jinja_text.h"

namespace trtmc::jinja {
namespace {

Value big(const char* digits) { return Value::big_integer(digits); }

TEST(JinjaValues, PrintFloatsAsPython) {  // Each from CPython's repr().
  EXPECT_EQ(repr_float(0.0), "0.0");
  EXPECT_EQ(repr_float(-0.0), "-0.0");
  EXPECT_EQ(repr_float(1e15), "1000000000000000.0");
  EXPECT_EQ(repr_float(1e16), "1e+16");
  EXPECT_EQ(repr_float(0.0001), "0.0001");
  EXPECT_EQ(repr_float(0.00001), "1e-05");
  EXPECT_EQ(repr_float(1e-7), "1e-07");
  EXPECT_EQ(repr_float(123456789.125), "123456789.125");
  EXPECT_EQ(repr_float(1.5e300), "1.5e+300");
  EXPECT_EQ(repr_float(5e-324), "5e-324");
  EXPECT_EQ(repr_float(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(repr_float(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(repr_float(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(JinjaValues, ChooseQuotesAsPython) {
  EXPECT_EQ(repr_string("plain"), "'plain'");
  EXPECT_EQ(repr_string("it's"), "\"it's\"");
  EXPECT_EQ(repr_string("say \"hi\""), "'say \"hi\"'");
  EXPECT_EQ(repr_string("it's \"both\""), "'it\\'s \"both\"'");
}

TEST(JinjaValues, KeepIntegersOfAnySize) {
  const Value value = Value::from_json(Json::parse("[18446744073709551616, -9223372036854775809]"));
  EXPECT_EQ(repr(value), "[18446744073709551616, -9223372036854775809]");
}

TEST(JinjaValues, CompareNumbersExactlyAcrossTypes) {
  EXPECT_TRUE(equal(int64_t{1}, 1.0));
  EXPECT_TRUE(equal(true, int64_t{1}));
  EXPECT_FALSE(equal(int64_t{9007199254740993}, 9007199254740992.0));  // 2^53 + 1
  EXPECT_EQ(compare(int64_t{9007199254740993}, 9007199254740992.0, "<"), 1);
  EXPECT_EQ(compare(big("9223372036854775808"), std::numeric_limits<int64_t>::max(), "<"), 1);
  EXPECT_EQ(compare(big("-9223372036854775809"), big("9223372036854775808"), "<"), -1);
  EXPECT_EQ(compare(big("-100000000000000000000"), big("-99999999999999999999"), "<"), -1);
  EXPECT_FALSE(equal(std::numeric_limits<double>::quiet_NaN(), int64_t{0}));
}

TEST(JinjaValues, EqualKeysOfDifferentTypesAreOneKeyAtItsFirstPlace) {
  Dict dict;
  dict.set(int64_t{1}, "a");
  dict.set("x", "b");
  dict.set(1.0, "c");
  dict.set(true, "d");
  EXPECT_EQ(repr(Value(std::move(dict))), "{1: 'd', 'x': 'b'}");
}

TEST(JinjaValues, LargeDictsFindWhatTheyHold) {
  Dict dict;
  for (int64_t i = 0; i < 1000; ++i) dict.set(std::to_string(i), i);
  for (int64_t i = 0; i < 1000; ++i) {
    const Value* found = dict.find(std::string_view(std::to_string(i)));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found->integer(), i);
  }
  EXPECT_EQ(dict.find(std::string_view("1000")), nullptr);
}

TEST(JinjaValues, ListsAreNoKeys) { EXPECT_THROW(hash(Value::list({})), Failure); }

TEST(JinjaStrftime, WeeksAndYearsOfTheIsoCalendar) {  // From CPython's datetime.
  const auto iso = [](int year, int month, int day, int week_day, int year_day) {
    std::tm time{};
    time.tm_year = year - 1900;
    time.tm_mon = month - 1;
    time.tm_mday = day;
    time.tm_wday = week_day;
    time.tm_yday = year_day - 1;
    return format_time(time, "%G-W%V-%u %U %W %j");
  };
  EXPECT_EQ(iso(2027, 1, 1, 5, 1), "2026-W53-5 00 00 001");
  EXPECT_EQ(iso(2024, 12, 30, 1, 365), "2025-W01-1 52 53 365");
  EXPECT_EQ(iso(2023, 1, 1, 0, 1), "2022-W52-7 01 00 001");
  EXPECT_EQ(iso(2020, 12, 31, 4, 366), "2020-W53-4 52 52 366");
}

}  // namespace
}  // namespace trtmc::jinja
