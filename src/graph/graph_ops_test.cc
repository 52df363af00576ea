#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/recording_sink.h"
#include "tests/support/error_of.h"

namespace trtmc {
namespace {

DecoderSpec spec_with(std::vector<LayerSpec> layers) {
  return {.vocab_size = 11,
          .hidden_size = 16,
          .intermediate_size = 24,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 4,
          .context_length = 32,
          .rms_norm_eps = 0.5F,
          .tied_embeddings = true,
          .rope = {.theta = 10000, .rotary_dim = 4, .scaling = {}},
          .layers = std::move(layers)};
}

// This and what follows is written by hand from the definition of the architecture.
constexpr const char* kRotatingAndNot = R"(%0 = input input_ids i64 [batch_size, sequence_length]
%1 = input attention_mask i64 [batch_size, total_sequence_length]
%2 = input position_ids i64 [batch_size, sequence_length]
%3 = input past_key_values.0.key f32 [batch_size, 2, past_sequence_length, 4]
%4 = input past_key_values.0.value f32 [batch_size, 2, past_sequence_length, 4]
%5 = input past_key_values.1.key f32 [batch_size, 2, past_sequence_length, 4]
%6 = input past_key_values.1.value f32 [batch_size, 2, past_sequence_length, 4]
%7 = causal_mask(%1, %0)
%8 = embed(%0, embedding)
%9 = vector(layers.0.attention_norm)
%10 = rms_norm(%8, %9, 0.5)
%11 = linear(%10, layers.0.q_proj)
%12 = linear(%10, layers.0.k_proj)
%13 = linear(%10, layers.0.v_proj)
%14 = constant rope.cos [32, 2]
%15 = gather(%14, %2)
%16 = constant rope.sin [32, 2]
%17 = gather(%16, %2)
%18 = split_heads(%11, 4)
%19 = rotate(%18, %15, %17, first 4)
%20 = split_heads(%12, 2)
%21 = rotate(%20, %15, %17, first 4)
%22 = concat(%3, %21, axis 2)
%23 = split_heads(%13, 2)
%24 = concat(%4, %23, axis 2)
%25 = attention(%19, %22, %24, mask %7)
%26 = merge_heads(%25)
%27 = linear(%26, layers.0.o_proj)
%28 = add(%8, %27)
%29 = vector(layers.0.mlp_norm)
%30 = rms_norm(%28, %29, 0.5)
%31 = linear(%30, layers.0.gate_proj)
%32 = linear(%30, layers.0.up_proj)
%33 = silu(%31)
%34 = multiply(%33, %32)
%35 = linear(%34, layers.0.down_proj)
%36 = add(%28, %35)
%37 = vector(layers.1.attention_norm)
%38 = rms_norm(%36, %37, 0.5)
%39 = linear(%38, layers.1.q_proj)
%40 = linear(%38, layers.1.k_proj)
%41 = linear(%38, layers.1.v_proj)
%42 = split_heads(%39, 4)
%43 = split_heads(%40, 2)
%44 = concat(%5, %43, axis 2)
%45 = split_heads(%41, 2)
%46 = concat(%6, %45, axis 2)
%47 = attention(%42, %44, %46, mask %7)
%48 = merge_heads(%47)
%49 = linear(%48, layers.1.o_proj)
%50 = add(%36, %49)
%51 = vector(layers.1.mlp_norm)
%52 = rms_norm(%50, %51, 0.5)
%53 = linear(%52, layers.1.gate_proj)
%54 = linear(%52, layers.1.up_proj)
%55 = silu(%53)
%56 = multiply(%55, %54)
%57 = linear(%56, layers.1.down_proj)
%58 = add(%50, %57)
%59 = vector(final_norm)
%60 = rms_norm(%58, %59, 0.5)
%61 = linear(%60, embedding)
output logits %61 [batch_size, sequence_length, 11]
output present.0.key %22 [batch_size, 2, total_sequence_length, 4]
output present.0.value %24 [batch_size, 2, total_sequence_length, 4]
output present.1.key %44 [batch_size, 2, total_sequence_length, 4]
output present.1.value %46 [batch_size, 2, total_sequence_length, 4]
)";

TEST(GraphOps, RecordTheLayerThatRotatesAndTheOneThatDoesNot) {
  EXPECT_EQ(record_as_text(spec_with({{true, 0}, {false, 0}}), {}), kRotatingAndNot);
}

// What is bf16 stays bf16, and what is worked out in float32 goes there and back at once.
constexpr const char* kInPlace = R"(%0 = input input_ids i32 [batch_size, sequence_length]
%1 = input position_ids i32 [batch_size, sequence_length]
%2 = input write_indices i32 [batch_size]
%3 = input logits_rows i32 [logits_rows]
%4 = input past_key_values.0.key bf16 [batch_size, 2, cache_capacity, 4]
%5 = input past_key_values.0.value bf16 [batch_size, 2, cache_capacity, 4]
%6 = input mask.window.8 bool [batch_size, 1, sequence_length, total_sequence_length]
%7 = embed(%0, embedding)
%8 = cast(%7, f32)
%9 = vector(layers.0.attention_norm)
%10 = rms_norm(%8, %9, 0.5)
%11 = cast(%10, bf16)
%12 = linear(%11, layers.0.q_proj)
%13 = linear(%11, layers.0.k_proj)
%14 = linear(%11, layers.0.v_proj)
%15 = constant rope.cos [32, 2]
%16 = gather(%15, %1)
%17 = constant rope.sin [32, 2]
%18 = gather(%17, %1)
%19 = split_heads(%12, 4)
%20 = cast(%19, f32)
%21 = rotate(%20, %16, %18, first 4)
%22 = cast(%21, bf16)
%23 = split_heads(%13, 2)
%24 = cast(%23, f32)
%25 = rotate(%24, %16, %18, first 4)
%26 = cast(%25, bf16)
%27 = update_cache(%4, %26, at %2)
%28 = split_heads(%14, 2)
%29 = update_cache(%5, %28, at %2)
%30 = attention(%22, %27, %29, mask %6)
%31 = merge_heads(%30)
%32 = linear(%31, layers.0.o_proj)
%33 = add(%7, %32)
%34 = cast(%33, f32)
%35 = vector(layers.0.mlp_norm)
%36 = rms_norm(%34, %35, 0.5)
%37 = cast(%36, bf16)
%38 = linear(%37, layers.0.gate_proj)
%39 = linear(%37, layers.0.up_proj)
%40 = silu(%38)
%41 = multiply(%40, %39)
%42 = linear(%41, layers.0.down_proj)
%43 = add(%33, %42)
%44 = select_tokens(%43, %3)
%45 = cast(%44, f32)
%46 = vector(final_norm)
%47 = rms_norm(%45, %46, 0.5)
%48 = cast(%47, bf16)
%49 = linear(%48, embedding)
%50 = cast(%49, f32)
output logits %50 [1, logits_rows, 11]
output present.0.key %27 [batch_size, 2, cache_capacity, 4]
output present.0.value %29 [batch_size, 2, cache_capacity, 4]
)";

TEST(GraphOps, RecordCachesInPlaceAndMasksThatAreGiven) {
  const GraphForm form{.type = ElementType::kBFloat16,
                       .index_type = ElementType::kInt32,
                       .cache = GraphForm::Cache::kInPlace,
                       .mask = GraphForm::Mask::kGiven,
                       .logits = GraphForm::Logits::kSelected};
  EXPECT_EQ(record_as_text(spec_with({{true, 8}}), form), kInPlace);
}

// Layer 0 has casts around two norms and two rotations: 8. Layer 1 is entered and left by one: 2.
// Then there is the last norm, and logits become float32: 3.
TEST(GraphOps, KeepALayerInFloat32) {
  const GraphForm form{.type = ElementType::kBFloat16, .fp32_layers = {1}};
  const std::string text = record_as_text(spec_with({{true, 0}, {true, 0}}), form);
  EXPECT_THAT(text, testing::HasSubstr("input past_key_values.0.key bf16"));
  EXPECT_THAT(text, testing::HasSubstr("input past_key_values.1.key f32"));
  EXPECT_THAT(text, testing::HasSubstr("input past_key_values.1.value f32"));
  size_t casts = 0;
  for (size_t at = 0; (at = text.find("cast(", at)) != std::string::npos; ++at) ++casts;
  EXPECT_EQ(casts, 13);
}

// 2^28 positions of two cosines of four bytes.
TEST(GraphOps, RefuseTablesOfRotationsBeyondTheLimit) {
  DecoderSpec spec = spec_with({{true, 0}});
  spec.context_length = 1 << 28;
  const Error error = error_of([&] { record_as_text(spec, {}); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(error.what(),
               "a context of 268435456 tokens makes tables of rotations of 2048 MiB each, the "
               "limit of a graph is 256");
  spec.layers = {{false, 0}};  // What does not rotate has no tables.
  EXPECT_THAT(record_as_text(spec, {}), testing::HasSubstr("output logits"));
}

TEST(GraphOps, RecordOneMaskForEachLengthOfWindow) {
  const std::string text = record_as_text(spec_with({{true, 8}, {false, 0}, {true, 8}}), {});
  EXPECT_NE(text.find("%9 = causal_mask(%1, %0, window 8)\n%10 = causal_mask(%1, %0)\n%11 = embed"),
            std::string::npos);
  EXPECT_EQ(text.find("causal_mask", text.find("%11 = embed")), std::string::npos);
  const size_t second = text.find("linear", text.find("layers.1.q_proj"));
  const size_t third = text.find("linear", text.find("layers.2.q_proj"));
  EXPECT_EQ(text.find("mask %9)"), text.find("mask %", text.find("layers.0.q_proj")));
  EXPECT_EQ(text.find("mask %10)", second), text.find("mask", second));
  EXPECT_EQ(text.find("mask %9)", third), text.find("mask", third));
}

TEST(GraphOps, ComposeANormWithoutLosingTheMean) {
  const std::string text = record_as_text(spec_with({}), {}, true);
  EXPECT_EQ(text.substr(text.find("%3")), R"(%3 = embed(%0, embedding)
%4 = vector(final_norm)
%5 = constant epsilon 0.5
%6 = multiply(%3, %3)
%7 = mean(%6)
%8 = add(%7, %5)
%9 = square_root(%8)
%10 = divide(%3, %9)
%11 = multiply(%10, %4)
%12 = linear(%11, embedding)
output logits %12 [batch_size, sequence_length, 11]
)");
}

// a' = a cos - b sin, b' = b cos + a sin for the halves a and b of what rotates; the rest stays.
TEST(GraphOps, ComposeARotationOfHalves) {
  DecoderSpec spec = spec_with({{true, 0}});
  spec.rope.rotary_dim = 2;
  const std::string text = record_as_text(spec, {}, true);
  const size_t begin = text.find("%22 = split_heads(%15, 4)");
  ASSERT_NE(begin, std::string::npos) << text;
  EXPECT_EQ(text.substr(begin, text.find("%36", begin) - begin), R"(%22 = split_heads(%15, 4)
%23 = split_heads(%19, 1)
%24 = split_heads(%21, 1)
%25 = slice(%22, 0, 1)
%26 = slice(%22, 1, 1)
%27 = multiply(%25, %23)
%28 = multiply(%26, %24)
%29 = multiply(%26, %23)
%30 = multiply(%25, %24)
%31 = subtract(%27, %28)
%32 = add(%29, %30)
%33 = slice(%22, 2, 2)
%34 = concat(%31, %32, %33, axis 3)
%35 = split_heads(%16, 2)
)");
}

}  // namespace
}  // namespace trtmc
