#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/error_of.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string field_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const FieldError& error) {
    return error.field();
  }
  return "no field";
}

TEST(Json, KeepsTheOrderOfKeys) {
  EXPECT_EQ(Json::parse(R"({"b": 1, "a": {"z": [], "y": null}})").dump(),
            R"({"b":1,"a":{"z":[],"y":null}})");
}

TEST(Json, OfEqualKeysTheLastWinsAtTheFirstOnesPlace) {
  EXPECT_EQ(Json::parse(R"({"a": 1, "b": 2, "a": 3})").dump(), R"({"a":3,"b":2})");
}

TEST(Json, EqualKeysAreRefusedByNameWhereAskedFor) {
  const auto parse = [](std::string_view text) {
    return Json::parse(text, 128, Json::EqualKeys::kRefuse);
  };
  EXPECT_NO_THROW(parse(R"({"a": {"x": 1}, "b": {"x": 1}})"));
  EXPECT_EQ(message_of([&] { parse(R"({"a": {"x": 1, "y": 2, "x": 3}})"); }),
            "the key \"x\" stands twice");
}

TEST(Json, AZeroByteDoesNotEndIt) {
  EXPECT_EQ(error_of([] { Json::parse(std::string_view("{}\0{", 4)); }).what(),
            std::string("byte 2: not valid JSON: a zero byte"));
}

TEST(Json, OfEqualKeysInALargeObjectTheLastWinsToo) {
  std::string text = "{";
  for (int i = 0; i < 100; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
  const Json json = Json::parse(text + R"("k3": 1, "k99": 2})");
  ASSERT_EQ(json.object()->size(), 100u);
  EXPECT_EQ((*json.object())[3], (Json::Member{"k3", 1}));
  EXPECT_EQ((*json.object())[99], (Json::Member{"k99", 2}));
}

TEST(Json, IntegersKeepEveryDigit) {
  EXPECT_EQ(*Json::parse("-9223372036854775808").integer(), INT64_MIN);
  EXPECT_EQ(Json::parse("18446744073709551615").big_integer()->digits, "18446744073709551615");
  EXPECT_EQ(Json::parse("-123456789012345678901234567890").dump(),
            "-123456789012345678901234567890");
}

TEST(Json, FloatsPrintTheirShortestForm) {
  EXPECT_EQ(Json::parse("[0.1, 1.0, 1e22, 1e-7, -0.0]").dump(), "[0.1,1.0,1e+22,1e-07,-0.0]");
}

TEST(Json, StringsEscapeWhatMustBeEscapedOnly) {
  EXPECT_EQ(Json("a\"\\\n\x01é").dump(), "\"a\\\"\\\\\\n\\u0001é\"");
  EXPECT_EQ(Json::parse(R"("\ud83d\ude00")").string()->c_str(), std::string("😀"));
}

TEST(Json, PrintsWithIndent) {
  EXPECT_EQ(Json::parse(R"({"a":[1,2],"b":{}})").dump(2),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
}

TEST(Json, ComplaintsNameTheByte) {
  EXPECT_THAT(message_of([] { (void)Json::parse("{\"a\": tru}"); }), HasSubstr("byte 9"));
  EXPECT_THAT(message_of([] { (void)Json::parse(""); }), HasSubstr("not valid JSON"));
  EXPECT_THAT(message_of([] { (void)Json::parse("[1] x"); }), HasSubstr("byte 4"));
}

TEST(Json, RefusesLoneSurrogatesBadUtf8AndNaN) {
  for (const char* text : {R"("\ud800")", "\"\xff\"", "NaN", "[Infinity]", "01", "'a'", "[1,]"}) {
    EXPECT_THROW((void)Json::parse(text), Error) << text;
  }
}

TEST(Json, ANumberBeyondADoubleIsNamed) {
  EXPECT_EQ(error_of([] { Json::parse("[1e999]"); }).what(),
            std::string("byte 5: a number beyond 1.8e308"));
}

TEST(Json, RefusesDeepNesting) {
  const std::string deep(200, '[');
  EXPECT_THAT(message_of([&] { (void)Json::parse(deep); }), HasSubstr("deeper than 128"));
  EXPECT_NO_THROW((void)Json::parse("[[[]]]", 3));
  EXPECT_THROW((void)Json::parse("[[[[]]]]", 3), Error);
}

TEST(JsonCursor, ComplaintsNameThePath) {
  const Json json = Json::parse(R"({"rope": {"factor": "two", "list": [1, true]}})");
  const JsonCursor root(json, "config.json");
  EXPECT_EQ(message_of([&] { (void)root.at("rope").at("factor").number(); }),
            "config.json.rope.factor: a string, expected a number");
  EXPECT_EQ(message_of([&] { (void)root.at("rope").at("list").elements()[1].integer(); }),
            "config.json.rope.list[1]: a boolean, expected an integer");
  EXPECT_EQ(message_of([&] { (void)root.at("theta"); }), "config.json: \"theta\" is missing");
  EXPECT_EQ(field_of([&] { (void)root.at("theta"); }), "config.json.theta");
  EXPECT_EQ(message_of([&] { root.at("rope").refuse_unknown_keys({"factor"}); }),
            "config.json.rope.list: unknown key");
}

TEST(JsonCursor, NullIsThereButNotSet) {
  const Json json = Json::parse(R"({"a": null})");
  EXPECT_TRUE(JsonCursor(json).find("a"));
  EXPECT_FALSE(JsonCursor(json).find_set("a"));
  EXPECT_FALSE(JsonCursor(json).find("b"));
}

}  // namespace
}  // namespace trtmc
