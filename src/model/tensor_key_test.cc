#include "model/tensor_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trtmc {
namespace {

using ::testing::ElementsAre;

DecoderSpec two_layers(bool tied) {
  return {.vocab_size = 100,
          .hidden_size = 24,
          .intermediate_size = 40,
          .num_heads = 6,
          .num_kv_heads = 2,
          .head_dim = 8,
          .context_length = 64,
          .rms_norm_eps = 1e-6F,
          .tied_embeddings = tied,
          .rope = {10000, 8, {}},
          .layers = {{true, 0}, {false, 0}}};
}

std::vector<std::string> names(const DecoderSpec& spec) {
  std::vector<std::string> result;
  for (const TensorKey& key : tensor_keys(spec)) result.push_back(to_string(key));
  return result;
}

TEST(TensorKey, IsNamedByLayerAndRole) {
  EXPECT_EQ(to_string(TensorKey{Role::kEmbedding}), "embedding");
  EXPECT_EQ(to_string(TensorKey{Role::kQProj, 3}), "layers.3.q_proj");
  EXPECT_EQ(to_string(TensorKey{Role::kMlpNorm, 35}), "layers.35.mlp_norm");
}

TEST(TensorKey, ReadsBackFromItsName) {
  for (const TensorKey& key : tensor_keys(two_layers(false))) {
    EXPECT_EQ(parse_tensor_key(to_string(key)), key) << to_string(key);
  }
}

TEST(TensorKey, HasOneNameOnly) {
  for (const std::string_view name :
       {"", "layers", "layers.", "layers.3", "layers.3.", "layers.q_proj", "layers.-1.q_proj",
        "layers.03.q_proj", "layers.+3.q_proj", "layers.3.embedding", "layers.3.q_proj.weight",
        "q_proj", "Embedding", "layers.99999999999.q_proj", "layers.3q_proj"}) {
    EXPECT_EQ(parse_tensor_key(name), std::nullopt) << name;
  }
}

TEST(TensorKey, OrderIsThatOfTheForwardPass) {
  EXPECT_THAT(
      names(two_layers(true)),
      ElementsAre("embedding", "layers.0.attention_norm", "layers.0.q_proj", "layers.0.k_proj",
                  "layers.0.v_proj", "layers.0.o_proj", "layers.0.mlp_norm", "layers.0.gate_proj",
                  "layers.0.up_proj", "layers.0.down_proj", "layers.1.attention_norm",
                  "layers.1.q_proj", "layers.1.k_proj", "layers.1.v_proj", "layers.1.o_proj",
                  "layers.1.mlp_norm", "layers.1.gate_proj", "layers.1.up_proj",
                  "layers.1.down_proj", "final_norm"));
}

TEST(TensorKey, OnlyAnUntiedDecoderHasAnOutputProjection) {
  EXPECT_EQ(names(two_layers(false)).back(), "lm_head");
  EXPECT_EQ(tensor_keys(two_layers(false)).size(), tensor_keys(two_layers(true)).size() + 1);
}

TEST(TensorKey, ShapesAreOutputsByInputs) {
  const DecoderSpec spec = two_layers(false);
  EXPECT_EQ(tensor_shape(spec, {Role::kEmbedding}), (Shape{100, 24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kLmHead}), (Shape{100, 24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kFinalNorm}), (Shape{24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kAttentionNorm, 0}), (Shape{24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kMlpNorm, 0}), (Shape{24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kQProj, 0}), (Shape{48, 24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kKProj, 0}), (Shape{16, 24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kVProj, 0}), (Shape{16, 24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kOProj, 0}), (Shape{24, 48}));
  EXPECT_EQ(tensor_shape(spec, {Role::kGateProj, 0}), (Shape{40, 24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kUpProj, 0}), (Shape{40, 24}));
  EXPECT_EQ(tensor_shape(spec, {Role::kDownProj, 0}), (Shape{24, 40}));
}

TEST(TensorKey, NormsAreTheVectors) {
  const DecoderSpec spec = two_layers(false);
  for (const TensorKey& key : tensor_keys(spec)) {
    EXPECT_EQ(is_norm(key.role), tensor_shape(spec, key).size() == 1) << to_string(key);
  }
}

}  // namespace
}  // namespace trtmc
