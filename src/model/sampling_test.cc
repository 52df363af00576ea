#include "model/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/json.h"

namespace trtmc {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SampleRow row_of(const SamplingParams& params, uint64_t draw = 0) {
  return {
      .row = 0, .params = &params, .draw = draw, .counts = {}, .allowed = {}, .top_logprobs = -1};
}

TokenId greedy(std::span<const float> logits, std::span<const uint32_t> allowed = {}) {
  const SamplingParams params{.temperature = 0};
  SampleRow row = row_of(params);
  row.allowed = allowed;
  return sample_token(logits, row).token;
}

std::vector<TokenId> kept_ids(std::span<const float> logits, const SamplingParams& params) {
  std::vector<TokenId> ids;
  for (const auto& kept : sampling_distribution(logits, row_of(params))) ids.push_back(kept.token);
  return ids;
}

// Known answers from Random123 1.14, tests/kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, GivesRandom123sKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformDraw, IsTheUpper53BitsOfTheFirstTwoWords) {
  const double expected = static_cast<double>(0x6627e8d5e169c58dULL >> 11) / 9007199254740992.0;
  EXPECT_EQ(uniform_draw(0, 0), expected);
}

TEST(UniformDraw, DependsOnEveryWordOfSeedAndDraw) {
  const double base = uniform_draw(1, 1);
  EXPECT_NE(base, uniform_draw(1 + (1ULL << 32), 1));
  EXPECT_NE(base, uniform_draw(1, 1 + (1ULL << 32)));
  EXPECT_NE(base, uniform_draw(2, 1));
  EXPECT_NE(base, uniform_draw(1, 2));
}

TEST(Greedy, TakesTheLargestLogitAtEveryPlaceOfAnOddVocabulary) {
  for (size_t size : {1u, 15u, 16u, 17u, 100u}) {
    for (size_t place = 0; place < size; ++place) {
      std::vector<float> logits(size, -3);
      logits[place] = -1;
      EXPECT_EQ(greedy(logits), static_cast<TokenId>(place)) << size;
    }
  }
}

TEST(Greedy, TakesTheSmallerIdOfEquals) {
  std::vector<float> logits(100, 0);
  for (size_t first : {0u, 3u, 17u, 31u}) {
    std::vector<float> tied = logits;
    tied[first] = tied[first + 1] = tied[first + 16] = tied[99] = 5;
    EXPECT_EQ(greedy(tied), static_cast<TokenId>(first));
  }
}

TEST(Greedy, NeverTakesNanAndTakesInfinity) {
  EXPECT_EQ(greedy(std::vector<float>{kNan, -5, kNan, -4}), 3);
  EXPECT_EQ(greedy(std::vector<float>{1, kInf, kNan, 2}), 1);
}

TEST(Greedy, WithNothingLeftTakesTheSmallestAllowedId) {
  std::vector<float> logits(40, -kInf);
  logits[1] = 3, logits[35] = kNan;
  EXPECT_EQ(greedy(logits, std::vector<uint32_t>{0, 0b1100}), 34);
  EXPECT_EQ(greedy(logits, std::vector<uint32_t>{0b100, 0b1100}), 2);
}

TEST(Greedy, ObeysTheMaskAcrossWords) {
  std::vector<float> logits(70, 0);
  logits[5] = 9, logits[64] = 7, logits[33] = 8;
  EXPECT_EQ(greedy(logits, std::vector<uint32_t>{0, 0b10, 0b1}), 33);
  EXPECT_EQ(greedy(logits, std::vector<uint32_t>{0, 0, 0b11}), 64);
  EXPECT_EQ(greedy(logits, std::vector<uint32_t>{0b1}), 0);
}

TEST(Sampling, ScalesByTemperature) {
  const std::vector<float> logits = {0, std::log(3.0f)};
  const SamplingParams params{.temperature = 0.5};  // 1 : 3 becomes 1 : 9.
  const auto distribution = sampling_distribution(logits, row_of(params));
  ASSERT_EQ(distribution.size(), 2u);
  EXPECT_NEAR(distribution[1].probability, 0.9, 1e-7);
}

TEST(Sampling, TinyTemperatureIsGreedyWithoutOverflow) {
  const SamplingParams params{.temperature = 1e-300};
  const std::vector<float> logits = {1e30f, 2e30f, -1e30f};
  EXPECT_EQ(sample_token(logits, row_of(params)).token, 1);
}

TEST(Sampling, SharesAmongEqualInfinities) {
  const std::vector<float> logits = {kInf, 3, kInf};
  const auto distribution = sampling_distribution(logits, row_of({.temperature = 1}));
  EXPECT_EQ(distribution[0].probability, 0.5);
  EXPECT_EQ(distribution[1].probability, 0);
}

TEST(Sampling, NeverDrawsWhatIsMinusInfinityOrNan) {
  const std::vector<float> logits = {-kInf, 0, kNan, 0, -kInf};
  const SamplingParams params;
  for (uint64_t draw = 0; draw < 200; ++draw) {
    const TokenId token = sample_token(logits, row_of(params, draw)).token;
    EXPECT_TRUE(token == 1 || token == 3);
  }
}

TEST(Sampling, NoNumbersGiveNoToken) {
  const std::vector<float> logits = {kNan, -kInf, kNan, -kInf};
  for (const double temperature : {0.0, 1.0}) {
    // A mask or a bias makes no number of what is none.
    SamplingParams params{.temperature = temperature, .logit_bias = {{2, 50}}};
    SampleRow row = row_of(params);
    row.top_logprobs = 2;
    const std::vector<uint32_t> allowed = {0b0110};
    row.allowed = allowed;
    const Sampled sampled = sample_token(logits, row);
    EXPECT_EQ(sampled.token, -1);
    EXPECT_TRUE(sampled.top.empty());
    EXPECT_TRUE(sampling_distribution(logits, row).empty());
  }
}

TEST(Sampling, TopPKeepsTheSmallerIdsOfEquals) {
  const std::vector<float> equal(4, 1.5f);
  EXPECT_THAT(kept_ids(equal, {.top_p = 0.5}), testing::ElementsAre(0, 1));
  EXPECT_THAT(kept_ids(equal, {.top_p = 0.51}), testing::ElementsAre(0, 1, 2));
}

TEST(Sampling, TopPZeroKeepsOneToken) {
  EXPECT_THAT(kept_ids(std::vector<float>{1, 3, 3, 2}, {.top_p = 0}), testing::ElementsAre(1));
}

TEST(Sampling, TopPOverAFlatVocabularyNeedsTokensFarBelowTheBest) {
  // e^12 = 162755 against 99999 ones: the best token alone has 0.619 of the mass.
  std::vector<float> logits(100000, 0);
  logits[777] = 12;
  EXPECT_THAT(kept_ids(logits, {.top_p = 0.6}), testing::ElementsAre(777));
  const double ones = 0.7 * (std::exp(12.0) + 99999) - std::exp(12.0);
  EXPECT_EQ(kept_ids(logits, {.top_p = 0.7}).size(), 1 + static_cast<size_t>(std::ceil(ones)));
}

TEST(Penalties, RepetitionMultipliesNegativesAndDividesTheRest) {
  const std::vector<float> logits = {2, -2, 2, -2};
  const std::vector<TokenId> prompt = {0, 3};
  const std::vector<TokenCount> counts = {{1, 3, false}, {3, 1, true}};
  const SamplingParams params{.repetition_penalty = 2};
  SampleRow row = row_of(params);
  row.prompt_tokens = prompt;
  row.counts = counts;  // Scores become 1, -4, 2, -4.
  const double total = std::exp(1) + std::exp(-4) + std::exp(2) + std::exp(-4);
  const auto distribution = sampling_distribution(logits, row);
  EXPECT_NEAR(distribution[0].probability, std::exp(1) / total, 1e-7);
  EXPECT_NEAR(distribution[1].probability, std::exp(-4) / total, 1e-7);
  EXPECT_NEAR(distribution[3].probability, std::exp(-4) / total, 1e-7);
}

// OpenAI: mu[j] -= c[j] * frequency + (c[j] > 0) * presence, c over the answer only.
TEST(Penalties, PresenceAndFrequencyCountTheOutputOnly) {
  const std::vector<float> logits = {0, 0, 0};
  const std::vector<TokenId> prompt = {0, 1};
  const std::vector<TokenCount> counts = {{1, 3, true}};
  const SamplingParams params{.presence_penalty = 0.25, .frequency_penalty = 0.5};
  SampleRow row = row_of(params);
  row.prompt_tokens = prompt;
  row.counts = counts;  // Scores become 0, -1.75, 0.
  const auto distribution = sampling_distribution(logits, row);
  EXPECT_NEAR(distribution[1].probability, std::exp(-1.75) / (2 + std::exp(-1.75)), 1e-7);
  EXPECT_EQ(distribution[0].probability, distribution[2].probability);
}

TEST(Penalties, ApplyAfterTheBiasAndToGreedyToo) {
  const std::vector<float> logits = {4, 3};
  const std::vector<TokenId> prompt = {0};
  SamplingParams params{.temperature = 0, .repetition_penalty = 2, .logit_bias = {{0, 1.5f}}};
  SampleRow row = row_of(params);
  row.prompt_tokens = prompt;
  EXPECT_EQ(sample_token(logits, row).token, 1);  // 5.5 / 2 < 3; were it 4 / 2 + 1.5, 0 would win.
  params.logit_bias = {{0, 3}};
  EXPECT_EQ(sample_token(logits, row).token, 0);
}

TEST(Logprobs, AreThoseOfTheModelsOwnDistribution) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f), -kInf};
  const SamplingParams params{.temperature = 0, .logit_bias = {{0, 50}}};
  SampleRow row = row_of(params);
  row.top_logprobs = 2;
  const Sampled sampled = sample_token(logits, row);
  EXPECT_EQ(sampled.token, 0);
  EXPECT_NEAR(sampled.logprob, std::log(1.0 / 8), 1e-6);
  ASSERT_EQ(sampled.top.size(), 2u);
  EXPECT_EQ(sampled.top[0].token, 2);
  EXPECT_NEAR(sampled.top[0].logprob, std::log(5.0 / 8), 1e-6);
  EXPECT_EQ(sampled.top[1].token, 1);
  EXPECT_EQ(log_probability(logits, 3), -kInf);
}

TEST(Logprobs, SurviveLargeLogits) {
  const std::vector<float> logits = {3e38f, 3e38f};
  EXPECT_NEAR(log_probability(logits, 0), -std::log(2.0), 1e-12);
}

TEST(Logprobs, TopTakesTheSmallerIdsOfEquals) {
  const auto top = top_logprobs(std::vector<float>{1, 2, 1, 2, 1}, 3);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].token, 1);
  EXPECT_EQ(top[1].token, 3);
  EXPECT_EQ(top[2].token, 0);
  EXPECT_EQ(top_logprobs(std::vector<float>{1, 2}, 20).size(), 2u);
}

// Pearson's statistic of `draws` draws against the definition. With fixed seeds it is one number;
// the bound is the 99.9 % point of chi-square with 9 degrees of freedom.
TEST(Draws, FollowTheDistribution) {
  const std::vector<float> logits = {0, 1, 2, -1, 0.5f, 1.5f, -2, 0.25f, 3, 1};
  const SamplingParams params{.temperature = 1.3, .seed = 20260904};
  constexpr int kDraws = 50000;
  std::map<TokenId, int> seen;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    ++seen[sample_token(logits, row_of(params, draw)).token];
  }
  double total = 0, statistic = 0;
  for (const float logit : logits) total += std::exp(logit / 1.3);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double expected = kDraws * std::exp(logits[i] / 1.3) / total;
    const double difference = seen[static_cast<TokenId>(i)] - expected;
    statistic += difference * difference / expected;
  }
  EXPECT_LT(statistic, 27.88);
}

TEST(Draws, AreEqualForEqualSeedAndDraw) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(static_cast<float>(i));
  const SamplingParams params{.seed = 9};
  std::vector<TokenId> first, second;
  for (uint64_t draw = 0; draw < 50; ++draw) {
    first.push_back(sample_token(logits, row_of(params, draw)).token);
    second.push_back(sample_token(logits, row_of(params, draw)).token);
  }
  EXPECT_EQ(first, second);
  EXPECT_NE(first, std::vector<TokenId>(50, first[0]));
}

TEST(Validate, NamesTheParameterThatIsOutOfRange) {
  const auto complaint = [](const SamplingParams& params) -> std::string {
    try {
      validate(params);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
  };
  EXPECT_EQ(complaint({}), "");
  EXPECT_THAT(complaint({.temperature = -1}), testing::StartsWith("temperature: -1"));
  EXPECT_THAT(complaint({.temperature = std::nan("")}), testing::StartsWith("temperature: nan"));
  EXPECT_THAT(complaint({.top_k = -1}), testing::StartsWith("top_k"));
  EXPECT_THAT(complaint({.top_p = 1.5}), testing::StartsWith("top_p"));
  EXPECT_THAT(complaint({.min_p = std::nan("")}), testing::StartsWith("min_p"));
  EXPECT_THAT(complaint({.repetition_penalty = 0}), testing::StartsWith("repetition_penalty"));
  EXPECT_THAT(complaint({.presence_penalty = 3}), testing::StartsWith("presence_penalty"));
  EXPECT_THAT(complaint({.frequency_penalty = -3}), testing::StartsWith("frequency_penalty"));
  EXPECT_THAT(complaint({.logit_bias = {{1, kNan}}}), testing::StartsWith("logit_bias"));
}

// tests/golden/sampling.json.xz, made with Transformers' own warpers in float64 by
// tools/make_sampling_goldens.py.
class TransformersWarpers : public testing::Test {
 protected:
  static Json golden() {
    std::ifstream file(TRTMC_BINARY_DIR "/testdata/tests/golden/sampling.json");
    std::stringstream text;
    text << file.rdbuf();
    return Json::parse(text.str());
  }

  static SamplingParams params_of(const JsonCursor& json) {
    SamplingParams params;
    for (const auto& [key, value] : json.members()) {
      if (key == "temperature") params.temperature = value.number();
      if (key == "top_k") params.top_k = static_cast<int>(value.integer());
      if (key == "top_p") params.top_p = value.number();
      if (key == "min_p") params.min_p = value.number();
      if (key == "repetition_penalty") params.repetition_penalty = value.number();
    }
    return params;
  }
};

TEST_F(TransformersWarpers, KeepTheSameTokensWithTheSameProbabilities) {
  const Json document = golden();
  const auto cases = JsonCursor(document).at("cases").elements();
  ASSERT_EQ(cases.size(), 20u);
  for (const JsonCursor& golden_case : cases) {
    SCOPED_TRACE(golden_case.at("params").json().dump());
    const SamplingParams params = params_of(golden_case.at("params"));
    std::vector<float> logits;
    for (const auto& logit : golden_case.at("logits").elements()) {
      logits.push_back(static_cast<float>(logit.number()));
    }
    std::vector<TokenId> context;
    for (const auto& id : golden_case.at("context").elements()) {
      context.push_back(static_cast<TokenId>(id.integer()));
    }
    std::ranges::sort(context);
    context.erase(std::unique(context.begin(), context.end()), context.end());
    SampleRow row = row_of(params);
    row.prompt_tokens = context;
    const auto distribution = sampling_distribution(logits, row);
    const auto kept = golden_case.at("kept").elements();
    const auto probabilities = golden_case.at("probabilities").elements();
    ASSERT_EQ(distribution.size(), kept.size());
    for (size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(distribution[i].token, kept[i].integer());
      // The penalty is computed in float: logits below 16 are good to 1e-6.
      EXPECT_NEAR(distribution[i].probability, probabilities[i].number(), 2e-6);
    }
  }
}

}  // namespace
}  // namespace trtmc
