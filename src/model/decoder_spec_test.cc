#include "model/decoder_spec.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"

namespace trtmc {
namespace {

using ::testing::HasSubstr;

DecoderSpec small_spec() {
  return {.vocab_size = 96,
          .hidden_size = 64,
          .intermediate_size = 160,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 16,
          .context_length = 512,
          .rms_norm_eps = 1e-6f,
          .tied_embeddings = true,
          .rope = {.theta = 10000, .rotary_dim = 16, .scaling = {}},
          .layers = {{.rope = true, .sliding_window = 0}, {.rope = false, .sliding_window = 0}}};
}

YarnScaling card_yarn() {
  return {.factor = 2,
          .beta_fast = 32,
          .beta_slow = 1,
          .attention_factor = 1.07,
          .original_context = 65536,
          .truncate = true};
}

Llama3Scaling llama31() { return {8, 1, 4, 8192}; }

// The complaint about a small spec with one change, or "".
std::string complaint(const std::function<void(DecoderSpec&)>& change) {
  DecoderSpec spec = small_spec();
  change(spec);
  try {
    validate(spec);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
}

TEST(DecoderSpec, ASensibleOneIsAccepted) {
  EXPECT_EQ(complaint([](DecoderSpec&) {}), "");
  EXPECT_EQ(complaint([](DecoderSpec& s) { s.rope.scaling = card_yarn(); }), "");
  EXPECT_EQ(complaint([](DecoderSpec& s) { s.rope.scaling = llama31(); }), "");
  EXPECT_EQ(complaint([](DecoderSpec& s) { s.layers[0].sliding_window = 64; }), "");
}

TEST(DecoderSpec, SizesBelowOneAreNamed) {
  EXPECT_THAT(complaint([](auto& s) { s.vocab_size = 0; }), HasSubstr("the vocabulary size is 0"));
  EXPECT_THAT(complaint([](auto& s) { s.hidden_size = -1; }), HasSubstr("the hidden size is -1"));
  EXPECT_THAT(complaint([](auto& s) { s.intermediate_size = 0; }), HasSubstr("intermediate size"));
  EXPECT_THAT(complaint([](auto& s) { s.num_heads = 0; }), HasSubstr("the number of heads is 0"));
  EXPECT_THAT(complaint([](auto& s) { s.num_kv_heads = 0; }), HasSubstr("KV heads is 0"));
  EXPECT_THAT(complaint([](auto& s) { s.head_dim = 0; }), HasSubstr("the head dimension is 0"));
  EXPECT_THAT(complaint([](auto& s) { s.context_length = 0; }), HasSubstr("the context length"));
  EXPECT_THAT(complaint([](auto& s) { s.layers.clear(); }), HasSubstr("the number of layers is 0"));
}

TEST(DecoderSpec, SizesWhoseProductsWouldOverflowAreRefused) {
  constexpr int kHuge = std::numeric_limits<int>::max();
  EXPECT_THAT(complaint([](auto& s) { s.hidden_size = kHuge; }), HasSubstr("the hidden size"));
  EXPECT_THAT(complaint([](auto& s) { s.num_heads = kHuge; }), HasSubstr("the number of heads"));
  EXPECT_THAT(complaint([](auto& s) {
                s.num_heads = s.num_kv_heads = 1 << 19;
                s.head_dim = 1 << 12;
              }),
              HasSubstr("the number of heads"));
}

TEST(DecoderSpec, KvHeadsMustDivideTheHeads) {
  EXPECT_THAT(complaint([](auto& s) { s.num_kv_heads = 3; }),
              HasSubstr("expected a divisor of the number of heads, 4"));
  EXPECT_THAT(complaint([](auto& s) { s.num_kv_heads = 8; }), HasSubstr("KV heads is 8"));
}

TEST(DecoderSpec, TheRotaryDimensionIsEvenAndWithinTheHead) {
  EXPECT_THAT(complaint([](auto& s) { s.rope.rotary_dim = 7; }), HasSubstr("an even number"));
  EXPECT_THAT(complaint([](auto& s) { s.rope.rotary_dim = 18; }), HasSubstr("dimension is 18"));
  EXPECT_THAT(complaint([](auto& s) { s.rope.rotary_dim = 0; }), HasSubstr("dimension is 0"));
}

TEST(DecoderSpec, NumbersThatAreNotFiniteAreRefused) {
  EXPECT_THAT(complaint([](auto& s) { s.rms_norm_eps = NAN; }), HasSubstr("epsilon is nan"));
  EXPECT_THAT(complaint([](auto& s) { s.rms_norm_eps = 0; }), HasSubstr("epsilon is 0"));
  EXPECT_THAT(complaint([](auto& s) { s.rope.theta = INFINITY; }), HasSubstr("theta is inf"));
  EXPECT_THAT(complaint([](auto& s) { s.rope.theta = 1; }), HasSubstr("theta is 1"));
}

TEST(DecoderSpec, YarnOutOfRangeIsNamed) {
  const auto with = [](auto change) {
    return complaint([&](DecoderSpec& s) {
      YarnScaling yarn = card_yarn();
      change(yarn);
      s.rope.scaling = yarn;
    });
  };
  EXPECT_THAT(with([](auto& y) { y.factor = 0.5; }), HasSubstr("the YaRN factor is 0.5"));
  EXPECT_THAT(with([](auto& y) { y.factor = NAN; }), HasSubstr("the YaRN factor is nan"));
  EXPECT_THAT(with([](auto& y) { y.beta_fast = 0.5; }), HasSubstr("at least beta_slow"));
  EXPECT_THAT(with([](auto& y) { y.beta_slow = -1; }), HasSubstr("beta_slow is -1"));
  EXPECT_THAT(with([](auto& y) { y.attention_factor = 0; }), HasSubstr("attention_factor is 0"));
  EXPECT_THAT(with([](auto& y) { y.original_context = 0; }), HasSubstr("original context is 0"));
}

TEST(DecoderSpec, Llama3OutOfRangeIsNamed) {
  const auto with = [](auto change) {
    return complaint([&](DecoderSpec& s) {
      Llama3Scaling llama3 = llama31();
      change(llama3);
      s.rope.scaling = llama3;
    });
  };
  EXPECT_THAT(with([](auto& l) { l.factor = 0; }), HasSubstr("the llama3 factor is 0"));
  EXPECT_THAT(with([](auto& l) { l.high_freq_factor = 1; }),
              HasSubstr("more than low_freq_factor"));
  EXPECT_THAT(with([](auto& l) { l.low_freq_factor = 0; }), HasSubstr("low_freq_factor is 0"));
}

TEST(DecoderSpec, ANegativeWindowIsNamedWithItsLayer) {
  EXPECT_THAT(complaint([](auto& s) { s.layers[1].sliding_window = -4; }),
              HasSubstr("the sliding window of layer 1 is -4"));
}

}  // namespace
}  // namespace trtmc
