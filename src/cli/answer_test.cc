#include "cli/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/fake_executor.h"

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
  SamplingOptions options;
  options.temperature = 0.2;
  const SamplingParams sampling = make_request(bundle_with_defaults(), options, {1}).sampling;
  EXPECT_EQ(sampling.temperature, 0.2);
  EXPECT_EQ(sampling.top_p, 0.95);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.repetition_penalty, 1);
}

TEST(MakeRequest, AnOptionOfZeroIsAValue) {
  SamplingOptions options;
  options.temperature = 0;
  options.seed = 0;
  const SamplingParams sampling = make_request(bundle_with_defaults(), options, {1}).sampling;
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.seed, 0U);
}

TEST(MakeRequest, StopsAtTheBundlesIdsAndTheOptionsTexts) {
  SamplingOptions options;
  options.stop = {"END"};
  const GenerationRequest request = make_request(bundle_with_defaults(), options, {1});
  EXPECT_THAT(request.stop_ids, ElementsAre(3, 39));
  EXPECT_THAT(request.stop, ElementsAre("END"));
}

TEST(MakeRequest, WithoutASeedEachIsAnother) {
  const auto seed = [] { return make_request(bundle_with_defaults(), {}, {1}).sampling.seed; };
  EXPECT_NE(seed(), seed());
}

TEST(Generate, AnErrorOfTheEngineKeepsItsCode) {
  FakeExecutor executor(
      50,
      {.num_blocks = 8, .block_size = 4, .max_tokens_per_step = 8, .max_sequences_per_step = 1});
  executor.fail_next_step(Error(ErrorCode::kExhausted, "no memory for scratch"));
  Engine engine(
      {.executor = &executor, .tokenizer = nullptr, .vocab_size = 50, .context_length = 32}, {});
  GenerationRequest request;
  request.prompt = {1};
  const Error error =
      error_of([&] { generate(engine, request, std::nullopt, [](const OutputDelta&) {}); });
  EXPECT_EQ(error.code(), ErrorCode::kExhausted);
  EXPECT_STREQ(error.what(), "no memory for scratch");
}

TEST(ToolCallJson, HasTheArgumentsAsJson) {
  EXPECT_EQ(to_json(ToolCall{"f", R"({"a": 1})"}).dump(), R"({"name":"f","arguments":{"a":1}})");
}

TEST(ToolCallJson, HasArgumentsThatAreNoJsonAsAString) {
  EXPECT_EQ(to_json(ToolCall{"f", "hello"}).dump(), R"({"name":"f","arguments":"hello"})");
  EXPECT_EQ(to_json(ToolCall{"f", "{\"a"}).dump(), R"({"name":"f","arguments":"{\"a"})");
}

}  // namespace
}  // namespace trtmc
