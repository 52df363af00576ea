#include "model/rope_table.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"

namespace trtmc {
namespace {

Json read_reference(const std::string& name) {
  return Json::parse(
      read_file(std::filesystem::path(TRTMC_SOURCE_DIR) / "src/model/testdata" / name));
}

std::vector<double> numbers(const JsonCursor& list) {
  std::vector<double> values;
  for (const JsonCursor& element : list.elements()) values.push_back(element.number());
  return values;
}

double number_or(const JsonCursor& object, std::string_view key, double fallback) {
  const auto member = object.find_set(key);
  return member ? member->number() : fallback;
}

RopeSpec card_rope(double factor) {
  return {.theta = 5000000,
          .rotary_dim = 128,
          .scaling = YarnScaling{.factor = factor,
                                 .beta_fast = 32,
                                 .beta_slow = 1,
                                 .attention_factor = yarn_attention_factor(factor, 0, 0),
                                 .original_context = 65536,
                                 .truncate = true}};
}

// Positions at which a table in float32 would already be wrong, up to the card's last one.
std::vector<int64_t> contract_positions() {
  std::vector<int64_t> positions;
  for (const int64_t first : {0, 70000, 131064}) {
    for (int64_t i = 0; i < 8; ++i) positions.push_back(first + i);
  }
  return positions;
}

void expect_cos_sin(const RopeTable& table, const std::vector<double>& frequencies,
                    double attention_factor) {
  std::vector<float> cos(frequencies.size());
  std::vector<float> sin(frequencies.size());
  for (const int64_t position : contract_positions()) {
    rope_cos_sin(table, position, cos, sin);
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      ASSERT_NEAR(cos[i], std::cos(angle) * attention_factor, 1e-6) << position << " " << i;
      ASSERT_NEAR(sin[i], std::sin(angle) * attention_factor, 1e-6) << position << " " << i;
    }
  }
}

TEST(RopeTable, TheModelCardsYarnIsWithinAMillionthAtEveryPosition) {
  const Json reference = read_reference("yarn_reference.json");
  for (const JsonCursor& yarn : JsonCursor(reference).at("yarn").elements()) {
    const double attention_factor = yarn.at("attention_factor").number();
    const RopeTable table = make_rope_table(card_rope(yarn.at("factor").number()));
    EXPECT_DOUBLE_EQ(table.attention_factor, attention_factor);
    expect_cos_sin(table, numbers(yarn.at("inv_freq")), attention_factor);
  }
}

TEST(RopeTable, WithoutScalingTheFrequenciesAreThePowersOfTheta) {
  const Json reference = read_reference("yarn_reference.json");
  const RopeTable table = make_rope_table({.theta = 5000000, .rotary_dim = 128, .scaling = {}});
  EXPECT_EQ(table.attention_factor, 1);
  expect_cos_sin(table, numbers(JsonCursor(reference).at("default_inv_freq")), 1);
}

TEST(RopeTable, TheCardsFrequenciesAreThePublishedOnes) {
  const RopeTable table = make_rope_table(card_rope(2));
  ASSERT_EQ(table.inverse_frequencies.size(), 64u);
  EXPECT_DOUBLE_EQ(table.inverse_frequencies[0], 1);
  EXPECT_NEAR(table.inverse_frequencies[26], 0.0017724753836407757, 1e-16);
  EXPECT_NEAR(table.inverse_frequencies[38], 5.616752507505192e-05, 1e-18);
  EXPECT_NEAR(table.inverse_frequencies[63], 1.272539894018803e-07, 1e-20);
}

// Transformers computes in float32: half a dozen roundings of 6e-8 each.
void expect_close(const RopeTable& table, const JsonCursor& reference) {
  const std::vector<double> expected = numbers(reference.at("inv_freq"));
  ASSERT_EQ(table.inverse_frequencies.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(table.inverse_frequencies[i], expected[i], 1e-6 * expected[i]) << i;
  }
  EXPECT_DOUBLE_EQ(table.attention_factor, reference.at("attention_factor").number());
}

TEST(RopeTable, EveryYarnSettingFollowsTransformers) {
  const Json reference = read_reference("yarn_variants.json");
  const auto cases = JsonCursor(reference).at("cases").elements();
  ASSERT_EQ(cases.size(), 7u);
  for (const JsonCursor& variant : cases) {
    SCOPED_TRACE(variant.json().dump());
    const JsonCursor rope = variant.at("rope");
    const double factor = rope.at("factor").number();
    const auto truncate = rope.find_set("truncate");
    const auto attention_factor = rope.find_set("attention_factor");
    const YarnScaling yarn{
        .factor = factor,
        .beta_fast = number_or(rope, "beta_fast", 32),
        .beta_slow = number_or(rope, "beta_slow", 1),
        .attention_factor = attention_factor
                                ? attention_factor->number()
                                : yarn_attention_factor(factor, number_or(rope, "mscale", 0),
                                                        number_or(rope, "mscale_all_dim", 0)),
        .original_context = static_cast<int>(rope.at("original_max_position_embeddings").integer()),
        .truncate = !truncate || truncate->boolean()};
    expect_close(make_rope_table({.theta = rope.at("rope_theta").number(),
                                  .rotary_dim = static_cast<int>(variant.at("head_dim").integer()),
                                  .scaling = yarn}),
                 variant);
  }
}

TEST(RopeTable, Llama3ScalingFollowsTransformers) {
  const Json reference = read_reference("llama3_reference.json");
  for (const JsonCursor& variant : JsonCursor(reference).at("cases").elements()) {
    const JsonCursor rope = variant.at("rope");
    const Llama3Scaling llama3{.factor = rope.at("factor").number(),
                               .low_freq_factor = rope.at("low_freq_factor").number(),
                               .high_freq_factor = rope.at("high_freq_factor").number(),
                               .original_context = static_cast<int>(
                                   rope.at("original_max_position_embeddings").integer())};
    expect_close(make_rope_table({.theta = rope.at("rope_theta").number(),
                                  .rotary_dim = static_cast<int>(variant.at("head_dim").integer()),
                                  .scaling = llama3}),
                 variant);
  }
}

TEST(RopeTable, TheAttentionFactorOfTheCardIsATenthOfTheLogarithmAboveOne) {
  EXPECT_DOUBLE_EQ(yarn_attention_factor(2, 0, 0), 1.0693147180559945);
  EXPECT_DOUBLE_EQ(yarn_attention_factor(4, 0, 0), 1.138629436111989);
  EXPECT_DOUBLE_EQ(yarn_attention_factor(1, 0, 0), 1);
}

TEST(RopeTable, OneMscaleAloneDoesNotCount) {
  EXPECT_DOUBLE_EQ(yarn_attention_factor(2, 0.5, 0), 1.0693147180559945);
  EXPECT_DOUBLE_EQ(yarn_attention_factor(2, 0, 0.5), 1.0693147180559945);
  EXPECT_DOUBLE_EQ(yarn_attention_factor(2, 1, 1), 1);
}

TEST(RopeTable, OnlyTheRotaryDimensionsHaveFrequencies) {
  const RopeTable table = make_rope_table({.theta = 10000, .rotary_dim = 4, .scaling = {}});
  ASSERT_EQ(table.inverse_frequencies.size(), 2u);
  EXPECT_DOUBLE_EQ(table.inverse_frequencies[1], 0.01);  // 10000^(-2/4)
}

}  // namespace
}  // namespace trtmc
