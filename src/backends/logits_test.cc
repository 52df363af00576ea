#include <gtest/gtest.h>

#include <cmath>

#include "backends/host_logits.h"

namespace trtmc {
namespace {

// Two rows of three logits, a float of padding behind each.
class TwoRows : public testing::Test {
 protected:
  std::vector<float> values_ = {0, std::log(2.0F), 0, 99, std::log(6.0F), 0, 0, 99};
  HostLogits logits_{values_, 2, 3, 4};
};

TEST_F(TwoRows, CopiesARowWithoutItsPadding) {
  std::vector<float> row(3);
  logits_.copy_row(1, row);
  EXPECT_EQ(row, (std::vector<float>{std::log(6.0F), 0, 0}));
}

TEST_F(TwoRows, SamplesTheLargestAtTemperatureZero) {
  SamplingParams greedy;
  greedy.temperature = 0;
  const SampleRow first{
      .row = 0, .params = &greedy, .draw = 0, .counts = {}, .allowed = {}, .top_logprobs = 0};
  SampleRow second = first;
  second.row = 1;
  std::vector<Sampled> sampled(2);
  logits_.sample(std::vector<SampleRow>{second, first}, sampled);
  EXPECT_EQ(sampled[0].token, 0);
  EXPECT_EQ(sampled[1].token, 1);
}

TEST_F(TwoRows, ScoresAreLogsOfTheSoftmax) {
  std::vector<TokenScore> scores(2);
  logits_.score(std::vector<ScoreRow>{{.row = 0, .target = 0, .top_logprobs = 2},
                                      {.row = 1, .target = 0, .top_logprobs = 0}},
                scores);
  EXPECT_NEAR(scores[0].logprob, std::log(0.25), 1e-6);
  ASSERT_EQ(scores[0].top.size(), 2U);
  EXPECT_EQ(scores[0].top[0].token, 1);
  EXPECT_NEAR(scores[0].top[0].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(scores[0].top[1].token, 0);
  EXPECT_NEAR(scores[1].logprob, std::log(0.75), 1e-6);
  EXPECT_TRUE(scores[1].top.empty());
}

}  // namespace
}  // namespace trtmc
