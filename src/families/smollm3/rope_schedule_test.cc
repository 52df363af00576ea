#include "families/smollm3/rope_schedule.h"

#include <gmock/gmock.h>

#include "tests/support/error_of.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

// "R" for a layer that rotates, "N" for one that does not.
std::string pattern(std::string_view config, int num_layers) {
  const Json json = Json::parse(config);
  std::string result;
  for (const bool rotates : rope_schedule(JsonCursor(json), num_layers))
    result += rotates ? 'R' : 'N';
  return result;
}

std::string complaint(std::string_view config, int num_layers = 4) {
  const Error error = error_of([&] { pattern(config, num_layers); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
  return error.what();
}

TEST(RopeSchedule, OneMeansThatTheLayerRotates) {
  EXPECT_EQ(pattern(R"({"no_rope_layers": [1, 1, 1, 0]})", 4), "RRRN");
  EXPECT_EQ(pattern(R"({"no_rope_layers": [true, false, 1, 0]})", 4), "RNRN");
}

TEST(RopeSchedule, TheListWinsOverTheInterval) {
  EXPECT_EQ(pattern(R"({"no_rope_layers": [0, 1, 1, 1], "no_rope_layer_interval": 2})", 4), "NRRR");
}

TEST(RopeSchedule, WithoutAListEveryIntervalThLayerDoesNotRotate) {
  EXPECT_EQ(pattern(R"({"no_rope_layer_interval": 3})", 7), "RRNRRNR");
  EXPECT_EQ(pattern(R"({"no_rope_layers": null, "no_rope_layer_interval": 2})", 4), "RNRN");
  EXPECT_EQ(pattern(R"({"no_rope_layer_interval": 1})", 3), "NNN");
  EXPECT_EQ(pattern(R"({"no_rope_layer_interval": 9})", 3), "RRR");
}

TEST(RopeSchedule, WithNeitherTheIntervalIsFour) { EXPECT_EQ(pattern("{}", 9), "RRRNRRRNR"); }

TEST(RopeSchedule, AListMayBeLonger) {
  EXPECT_EQ(pattern(R"({"no_rope_layers": [1, 0, 1, 0, 0]})", 3), "RNR");
}

TEST(RopeSchedule, AListThatIsTooShortIsRefused) {
  EXPECT_EQ(complaint(R"({"no_rope_layers": [1, 1, 1]})"),
            "no_rope_layers: 3 entries, expected one for each of the 4 layers");
  EXPECT_THAT(complaint(R"({"no_rope_layers": []})"), HasSubstr("no_rope_layers: 0 entries"));
}

TEST(RopeSchedule, WhatIsNoListIsRefused) {
  EXPECT_EQ(complaint(R"({"no_rope_layers": 4})"), "no_rope_layers: an integer, expected an array");
  EXPECT_EQ(complaint(R"({"no_rope_layers": {"0": 1}})"),
            "no_rope_layers: an object, expected an array");
}

TEST(RopeSchedule, OtherEntriesAreRefusedByIndex) {
  EXPECT_EQ(complaint(R"({"no_rope_layers": [1, 1, 2, 0]})"),
            "no_rope_layers[2]: 2, expected 0, 1, true or false");
  EXPECT_THAT(complaint(R"({"no_rope_layers": [-1, 1, 1, 0]})"),
              HasSubstr("no_rope_layers[0]: -1"));
  EXPECT_THAT(complaint(R"({"no_rope_layers": [1, 1, 1, null]})"), HasSubstr("[3]: null"));
  EXPECT_THAT(complaint(R"({"no_rope_layers": [1, "1", 1, 0]})"), HasSubstr("[1]: \"1\""));
  EXPECT_THAT(complaint(R"({"no_rope_layers": [1, 1, 0.5, 0]})"), HasSubstr("[2]: 0.5"));
  // Also behind the last layer: such a list is no schedule.
  EXPECT_THAT(complaint(R"({"no_rope_layers": [1, 1, 1, 0, 7]})"), HasSubstr("[4]: 7"));
}

TEST(RopeSchedule, AnIntervalBelowOneOrNoIntegerIsRefused) {
  EXPECT_EQ(complaint(R"({"no_rope_layer_interval": 0})"),
            "no_rope_layer_interval: 0, expected 1 or more");
  EXPECT_THAT(complaint(R"({"no_rope_layer_interval": -4})"), HasSubstr("-4, expected 1 or more"));
  EXPECT_THAT(complaint(R"({"no_rope_layer_interval": "4"})"), HasSubstr("a string, expected an"));
  EXPECT_THAT(complaint(R"({"no_rope_layer_interval": 2.5})"), HasSubstr("a number, expected an"));
  EXPECT_THAT(complaint(R"({"no_rope_layer_interval": null})"), HasSubstr("null, expected an"));
}

}  // namespace
}  // namespace trtmc
