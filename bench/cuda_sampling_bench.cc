// Times sampling on the first CUDA device, from rows of logits there to tokens on the host.
//
// usage: cuda_sampling_bench [rounds]
// The rows are those of sampling_bench; prints the median microseconds of a call of so many rows,
// the upload of what is asked and the way back among them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "backends/cuda/check_cuda.h"
#include "backends/cuda/cuda_sampler.h"
#include "base/error.h"

namespace {

using namespace trtmc;

constexpr int kVocabulary = 128256;
constexpr int kMostRows = 64;

std::vector<float> random_rows() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 2.5F);
  std::vector<float> rows(size_t{kVocabulary} * kMostRows);
  for (float& logit : rows) logit = normal(random);
  for (int row = 0; row < kMostRows; ++row) {
    for (int i = 0; i < 30; ++i) {
      const auto token = random() % kVocabulary;
      rows[static_cast<size_t>(row) * kVocabulary + token] = 22 - static_cast<float>(i) / 3;
    }
  }
  return rows;
}

double median_microseconds(int rounds, cuda::CudaSampler& sampler, const float* logits,
                           std::vector<SampleRow> rows) {
  std::vector<Sampled> out(rows.size());
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    for (SampleRow& row : rows) ++row.draw;
    const auto start = std::chrono::steady_clock::now();
    if (!sampler.sample(logits, kVocabulary, rows, out).empty()) std::abort();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    times.push_back(took.count());
  }
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[static_cast<size_t>(rounds / 2)];
}

void run(int rounds) {
  cudaStream_t stream = nullptr;
  cuda::check_cuda(cudaStreamCreate(&stream), "a stream");
  cudaDeviceProp properties{};
  cuda::check_cuda(cudaGetDeviceProperties(&properties, 0), "the GPU");
  cuda::CudaSampler sampler(kVocabulary, {.stream = stream, .overlaps = properties.major >= 9});
  const std::vector<float> rows = random_rows();
  const cuda::DeviceBuffer<float> logits(rows.size(), "rows");
  cuda::check_cuda(cudaMemcpy(logits.data(), rows.data(), logits.bytes(), cudaMemcpyHostToDevice),
                   "rows");

  const std::vector<TokenCount> counts(1, {17, 1, false});
  const std::vector<uint32_t> allowed(kVocabulary / 32, 0x7fffffff);
  const auto measure = [&](std::string_view name, const SamplingParams& params, bool lists,
                           int top_logprobs) {
    fmt::print("{:<28}", name);
    for (const int num_rows : {1, 8, 32, kMostRows}) {
      std::vector<SampleRow> of;
      for (int row = 0; row < num_rows; ++row) {
        of.push_back({.row = row,
                      .params = &params,
                      .draw = 0,
                      .counts = {},
                      .allowed = {},
                      .top_logprobs = top_logprobs});
        if (lists) of.back().counts = counts, of.back().allowed = allowed;
      }
      fmt::print(" {:>9.1f}", median_microseconds(rounds, sampler, logits.data(), of));
    }
    fmt::print("\n");
  };
  fmt::print("{}, microseconds of a call of 1, 8, 32 and {} rows\n", properties.name, kMostRows);
  measure("temperature", {.temperature = 0.7}, false, -1);
  measure("top-k 50", {.temperature = 0.7, .top_k = 50}, false, -1);
  measure("top-p 0.95", {.temperature = 0.6, .top_p = 0.95}, false, -1);
  measure("top-k 50, top-p 0.95", {.temperature = 0.6, .top_k = 50, .top_p = 0.95}, false, -1);
  measure("top-p, penalties, mask", {.top_p = 0.95, .presence_penalty = 0.5}, true, -1);
  measure("top-p, 20 logprobs", {.temperature = 0.6, .top_p = 0.95}, false, 20);
  measure("greedy, 20 logprobs", {.temperature = 0}, false, 20);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? std::atoi(argv[1]) : 200);
  } catch (const Error& error) {
    fmt::print(stderr, "cuda_sampling_bench: {}\n", error.what());
    return exit_status(error.code());
  }
  return 0;
}
