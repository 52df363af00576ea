#include "api/generation_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc {
namespace {

using ::testing::ElementsAre;

Manifest bundle_with_defaults() {
  Manifest manifest;
  manifest.stop_ids = {3, 39};
  manifest.default_sampling.temperature = 0.6;
  manifest.default_sampling.top_p = 0.95;
  return manifest;
}

TEST(MakeRequest, TakesTheOptionElseTheBundlesValueElseTheBuiltInOne) {
  GenerationOptions options;
  options.temperature = 0.2;
  const SamplingParams sampling = make_request(bundle_with_defaults(), options, {1}).sampling;
  EXPECT_EQ(sampling.temperature, 0.2);
  EXPECT_EQ(sampling.top_p, 0.95);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.repetition_penalty, 1);
}

TEST(MakeRequest, AnOptionOfZeroIsAValue) {
  GenerationOptions options;
  options.temperature = 0;
  options.seed = 0;
  const SamplingParams sampling = make_request(bundle_with_defaults(), options, {1}).sampling;
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.seed, 0U);
}

TEST(MakeRequest, StopsAtTheBundlesIdsAndTheOptionsTexts) {
  GenerationOptions options;
  options.stop = {"END"};
  const GenerationRequest request = make_request(bundle_with_defaults(), options, {1});
  EXPECT_THAT(request.stop_ids, ElementsAre(3, 39));
  EXPECT_THAT(request.stop, ElementsAre("END"));
}

TEST(MakeRequest, WithoutASeedEachIsAnother) {
  const auto seed = [] { return make_request(bundle_with_defaults(), {}, {1}).sampling.seed; };
  EXPECT_NE(seed(), seed());
}

}  // namespace
}  // namespace trtmc
