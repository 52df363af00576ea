// Times sample_token on one core: from a row of logits in memory to a token.
//
// usage: sampling_bench [rounds]
// Logits are normal with a deviation of 2.5 and a few tokens above them, as those of a model are;
// those called flat have no tokens above. Prints the best microseconds of each case.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string_view>
#include <vector>

#include "model/sampling.h"

namespace {

using namespace trtmc;

constexpr size_t kVocabulary = 128256;

std::vector<float> random_logits(bool flat) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 2.5F);
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) logit = normal(random);
  for (size_t i = 0; i < 30 && !flat; ++i) {
    logits[random() % kVocabulary] = 22 - static_cast<float>(i) / 3;
  }
  return logits;
}

// Processor time of one call, the best of `rounds` of eight.
double best_microseconds(int rounds, const std::vector<float>& logits, SampleRow row) {
  constexpr int kCalls = 8;
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const std::clock_t start = std::clock();
    for (int call = 0; call < kCalls; ++call) {
      ++row.draw;
      if (sample_token(logits, row).token < 0) std::abort();
    }
    const auto ticks = static_cast<double>(std::clock() - start);
    best = std::min(best, ticks * 1e6 / CLOCKS_PER_SEC / kCalls);
  }
  return best;
}

void run(int rounds, std::string_view name, const SamplingParams& params, int top_logprobs = -1) {
  fmt::print("{:<22}", name);
  for (const bool flat : {false, true}) {
    const auto logits = random_logits(flat);
    const SampleRow row{.row = 0,
                        .params = &params,
                        .draw = 0,
                        .counts = {},
                        .allowed = {},
                        .top_logprobs = top_logprobs};
    fmt::print(" {:>8.1f}", best_microseconds(rounds, logits, row));
  }
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  fmt::print("microseconds              model     flat\n");
  run(rounds, "greedy", {.temperature = 0});
  run(rounds, "greedy, 20 logprobs", {.temperature = 0}, 20);
  run(rounds, "temperature", {.temperature = 0.7});
  run(rounds, "top-k 50", {.temperature = 0.7, .top_k = 50});
  run(rounds, "top-p 0.95", {.temperature = 0.6, .top_p = 0.95});
  run(rounds, "min-p 0.05", {.temperature = 0.6, .min_p = 0.05});
  run(rounds, "top-k 50, top-p 0.95", {.temperature = 0.6, .top_k = 50, .top_p = 0.95}, 0);
  return 0;
}
