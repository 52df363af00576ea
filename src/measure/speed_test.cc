#include "measure/speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/backend_loader.h"
#include "base/error.h"
#include "tests/support/random_bundle.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

// Two layers of 4 heads of 8 over 2 KV heads; 10 ids.
DecoderSpec small_spec() {
  DecoderSpec spec{.vocab_size = 10,
                   .hidden_size = 32,
                   .intermediate_size = 48,
                   .num_heads = 4,
                   .num_kv_heads = 2,
                   .head_dim = 8,
                   .context_length = 256,
                   .rms_norm_eps = 1e-6F,
                   .tied_embeddings = true,
                   .rope = {.theta = 1e4, .rotary_dim = 8, .scaling = {}},
                   .layers = {}};
  spec.layers.assign(2, {.rope = true, .sliding_window = 0});
  return spec;
}

// A layer's products: q and o of 32 x 32, k and v of 16 x 32, three of 48 x 32.
constexpr double kTokenOperations = 2.0 * 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32);
constexpr double kHeadOperations = 2.0 * 10 * 32;
// A query and a position it sees: a product with the key and one with the value, in two layers.
constexpr double kAttentionOperations = 2.0 * 4 * 32;

TEST(Work, OfADecodeReadsWeightsAndWhatIsSeenOnceAStep) {
  const Work work = work_of(small_spec(), 1000, 80,
                            {.kind = SpeedKind::kDecode, .tokens = 2, .depth = 5, .batch = 3}, 1);
  EXPECT_DOUBLE_EQ(work.bytes, 2 * 1000 + 3 * 80 * (6 + 7));
  EXPECT_DOUBLE_EQ(work.operations,
                   3 * (2 * (kTokenOperations + kHeadOperations) + kAttentionOperations * (6 + 7)));
}

TEST(Work, OfAPrefillReadsTheWeightsOnceAChunkAndScoresItsLastTokenOnly) {
  const Work work = work_of(small_spec(), 1000, 80,
                            {.kind = SpeedKind::kPrefill, .tokens = 4, .depth = 0, .batch = 1}, 4);
  EXPECT_DOUBLE_EQ(work.bytes, 1000 + 80 * 4);
  EXPECT_DOUBLE_EQ(work.operations,
                   4 * kTokenOperations + kHeadOperations + kAttentionOperations * (1 + 2 + 3 + 4));
}

TEST(Work, OfALayerWithAWindowEndsWithIt) {
  DecoderSpec spec = small_spec();
  for (LayerSpec& layer : spec.layers) layer.sliding_window = 4;
  const Work work =
      work_of(spec, 0, 80, {.kind = SpeedKind::kDecode, .tokens = 1, .depth = 100, .batch = 1}, 1);
  EXPECT_DOUBLE_EQ(work.bytes, 80 * 4);
}

TEST(Range, HasTheMedianOfItsValues) {
  const Range range({5, 1, 3});
  EXPECT_EQ(range.min, 1);
  EXPECT_EQ(range.median, 3);
  EXPECT_EQ(Range({10, 2, 1, 3}).median, 2.5);
  EXPECT_EQ(range.max, 5);
}

class Meter : public ::testing::Test {
 protected:
  Meter() { write_random_bundle(path_, small_spec(), "bf16", 1); }

  std::unique_ptr<Executor> load(const Bundle& bundle, std::string_view backend) {
    ExecutorOptions options;
    options.num_threads = 1;
    return find_backend(backend, bundle.manifest()).load(bundle, options);
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "random.trtmc";
};

TEST_F(Meter, GivesTheSameHashWhereTheNumbersAreTheSame) {
  const Bundle bundle(path_);
  const auto executor = load(bundle, "cpu");
  SpeedMeter meter(bundle, *executor);
  const SpeedCase of{.kind = SpeedKind::kPrefill, .tokens = 20, .depth = 0, .batch = 2};
  const Speed first = meter.measure(of, 2);
  const Speed again = meter.measure(of, 1);
  SpeedCase longer = of;
  longer.tokens = 21;
  EXPECT_EQ(first.logits_hash, again.logits_hash);
  EXPECT_NE(first.logits_hash, meter.measure(longer, 1).logits_hash);
  EXPECT_GT(first.tokens_per_second.min, 0);
  EXPECT_GT(first.read_roof, 0);
}

TEST_F(Meter, DecodesBehindAsManyTokensAsAsked) {
  const Bundle bundle(path_);
  const auto executor = load(bundle, "cpu");
  SpeedMeter meter(bundle, *executor);
  const SpeedCase of{.kind = SpeedKind::kDecode, .tokens = 3, .depth = 100, .batch = 2};
  SpeedCase shallow = of;
  shallow.depth = 99;
  EXPECT_NE(meter.measure(of, 1).logits_hash, meter.measure(shallow, 1).logits_hash);
}

TEST_F(Meter, FillsNoMoreThanTheDepth) {
  DecoderSpec spec = small_spec();
  spec.context_length = 8;  // Shorter than a block.
  const auto path = folder_.path() / "short.trtmc";
  write_random_bundle(path, spec, "bf16", 1);
  const Bundle bundle(path);
  const auto executor = load(bundle, "cpu");
  SpeedMeter meter(bundle, *executor);
  const Speed speed =
      meter.measure({.kind = SpeedKind::kDecode, .tokens = 3, .depth = 5, .batch = 1}, 1);
  EXPECT_GT(speed.tokens_per_second.min, 0);
}

TEST_F(Meter, RefusesWhatDoesNotFit) {
  const Bundle bundle(path_);
  const auto executor = load(bundle, "reference");
  SpeedMeter meter(bundle, *executor);
  try {
    meter.measure({.kind = SpeedKind::kDecode, .tokens = 10, .depth = 250, .batch = 4}, 1);
    FAIL() << "1040 tokens in room for 256";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("4 sequences of 260 tokens, but KV memory holds 256"));
  }
  EXPECT_THROW(meter.measure({.kind = SpeedKind::kDecode, .tokens = 1, .batch = 100}, 1), Error);
}

}  // namespace
}  // namespace trtmc
