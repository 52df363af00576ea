#include "backends/tensorrt/engine_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc::tensorrt {
namespace {

using testing::ElementsAre;

constexpr auto kNativeKv = DecoderRoute::kNativeKv;
constexpr auto kStandard = DecoderRoute::kStandard;
constexpr auto kDualProfile = DecoderRoute::kDualProfile;

std::vector<int> mask_of(int num_tokens, int num_past, int num_visible, int window) {
  std::vector<uint8_t> mask(static_cast<size_t>(num_tokens) * static_cast<size_t>(num_visible), 7);
  fill_mask(num_tokens, num_past, num_visible, window, mask);
  return {mask.begin(), mask.end()};
}

TEST(EngineShape, OfTheStandardRouteIsTwoEngines) {
  const std::vector<EngineShape> engines = engines_of(kStandard, 4096, 512);
  const EngineShape prompts{.fixed = {{"batch_size", 1}},
                            .profiles = {{{"sequence_length", {1, 512, 512}},
                                          {"logits_rows", {1, 1, 512}},
                                          {"past_sequence_length", {0, 0, 4095}},
                                          {"total_sequence_length", {1, 512, 4607}}}}};
  const EngineShape singles{.fixed = {{"batch_size", 1}},
                            .profiles = {{{"sequence_length", {1, 1, 1}},
                                          {"logits_rows", {1, 1, 1}},
                                          {"past_sequence_length", {1, 2048, 4095}},
                                          {"total_sequence_length", {2, 2049, 4096}}}}};
  EXPECT_THAT(engines, ElementsAre(prompts, singles));
}

TEST(EngineShape, OfTheDualProfileIsTheSameInOneEngine) {
  const std::vector<EngineShape> apart = engines_of(kStandard, 4096, 512);
  const std::vector<EngineShape> together = engines_of(kDualProfile, 4096, 512);
  ASSERT_EQ(together.size(), 1);
  EXPECT_THAT(together[0].profiles, ElementsAre(apart[0].profiles[0], apart[1].profiles[0]));
}

TEST(EngineShape, OfTheNativeRouteReadsTokensInUse) {
  const std::vector<EngineShape> engines = engines_of(kNativeKv, 4096, 512);
  const EngineShape expected{.fixed = {{"batch_size", 1}, {"cache_capacity", 4096}},
                             .profiles = {{{"sequence_length", {1, 512, 512}},
                                           {"logits_rows", {1, 1, 512}},
                                           {"total_sequence_length", {256, 512, 4096}}},
                                          {{"sequence_length", {1, 1, 1}},
                                           {"logits_rows", {1, 1, 1}},
                                           {"total_sequence_length", {256, 2304, 4096}}}}};
  EXPECT_THAT(engines, ElementsAre(expected));
}

TEST(EngineShape, HoldsForACapacityOfOneToken) {
  for (const DecoderRoute route : {kNativeKv, kStandard, kDualProfile}) {
    for (const EngineShape& engine : engines_of(route, 1, 1)) {
      for (const EngineProfile& profile : engine.profiles) {
        for (const auto& [axis, range] : profile) {
          EXPECT_LE(range.least, range.usual) << axis;
          EXPECT_LE(range.usual, range.most) << axis;
        }
      }
    }
  }
}

TEST(EnginePlace, OfASingleTokenAfterOthersIsApart) {
  EXPECT_EQ(place_of_run(kStandard, 1, 7), (EnginePlace{1, 0}));
  EXPECT_EQ(place_of_run(kDualProfile, 1, 7), (EnginePlace{0, 1}));
  EXPECT_EQ(place_of_run(kNativeKv, 1, 7), (EnginePlace{0, 1}));
}

TEST(EnginePlace, OfAPromptIsThatOfPrompts) {
  for (const DecoderRoute route : {kNativeKv, kStandard, kDualProfile}) {
    EXPECT_EQ(place_of_run(route, 2, 7), (EnginePlace{0, 0}));
    EXPECT_EQ(place_of_run(route, 1, 0), (EnginePlace{0, 0}));
  }
}

TEST(VisibleTokens, AreThoseInUse) {
  EXPECT_EQ(visible_tokens(kStandard, 65536, 1, 10), 11);
  EXPECT_EQ(visible_tokens(kDualProfile, 65536, 5, 10), 15);
}

TEST(VisibleTokens, AreWholeExtentsInPlace) {
  EXPECT_EQ(visible_tokens(kNativeKv, 65536, 1, 255), 256);
  EXPECT_EQ(visible_tokens(kNativeKv, 65536, 1, 256), 512);
  EXPECT_EQ(visible_tokens(kNativeKv, 300, 1, 256), 300);  // The cache has no more.
}

TEST(Mask, LetsAQuerySeeItselfAndWhatCameBefore) {
  EXPECT_THAT(mask_of(2, 1, 4, 0), ElementsAre(1, 1, 0, 0,  //
                                               1, 1, 1, 0));
}

TEST(Mask, OfAWindowEndsWithTheQuery) {
  EXPECT_THAT(mask_of(3, 1, 4, 2), ElementsAre(1, 1, 0, 0,  //
                                               0, 1, 1, 0,  //
                                               0, 0, 1, 1));
}

}  // namespace
}  // namespace trtmc::tensorrt
