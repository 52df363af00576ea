// What the device samples and scores, against the host: equal to the last bit. Needs no model.
#include <gtest/gtest.h>

#include "backends/backend_loader.h"
#ifdef TRTMC_CUDA
#include <bit>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/cuda_logits.h"
#include "backends/host_logits.h"
#include "tests/support/sample_cases.h"

namespace trtmc {
namespace {

using cuda::check_cuda;
using cuda::Stream;

class CudaSampling : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    for (const Backend* backend : all_backends()) {
      if (backend->name() != "cuda") continue;
      if (const auto reason = backend->unavailable()) {
        GTEST_SKIP() << "skipped: no CUDA device: " << *reason;
      }
    }
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, 0), "the GPU");
    stream_ = std::make_unique<Stream>();
    sampler_ = std::make_unique<cuda::CudaSampler>(
        vocab_size(), cuda::Launch{.stream = stream_->get(), .overlaps = properties.major >= 9});
    device_ = cuda::DeviceBuffer<float>(static_cast<size_t>(kMostRows * stride()), "rows");
  }

  static int vocab_size() { return GetParam(); }
  static int64_t stride() { return (int64_t{vocab_size()} + 3) / 4 * 4; }

  // The rows on the device.
  cuda::CudaLogits upload(const std::vector<SampleCase>& cases) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::vector<float>& logits = cases[i].logits;
      check_cuda(cudaMemcpy(device_.data() + static_cast<int64_t>(i) * stride(), logits.data(),
                            logits.size() * sizeof(float), cudaMemcpyHostToDevice),
                 "rows");
    }
    // A copy may return before the device has it all, and the sampler's stream waits for no other.
    check_cuda(cudaDeviceSynchronize(), "rows");
    return {device_.data(), stride(), static_cast<int>(cases.size()),
            vocab_size(),   {},       sampler_.get()};
  }

  static constexpr int kMostRows = 256;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<cuda::CudaSampler> sampler_;
  cuda::DeviceBuffer<float> device_;
};

void expect_same_top(const std::vector<TokenLogprob>& device,
                     const std::vector<TokenLogprob>& host) {
  ASSERT_EQ(device.size(), host.size());
  for (size_t i = 0; i < host.size(); ++i) {
    EXPECT_EQ(device[i].token, host[i].token) << i;
    EXPECT_EQ(std::bit_cast<uint32_t>(device[i].logprob), std::bit_cast<uint32_t>(host[i].logprob));
  }
}

void expect_same(const Sampled& device, const Sampled& host) {
  EXPECT_EQ(device.token, host.token);
  EXPECT_EQ(std::bit_cast<uint32_t>(device.logprob), std::bit_cast<uint32_t>(host.logprob));
  expect_same_top(device.top, host.top);
}

std::vector<SampleCase> next_cases(SampleCases& source, int count) {
  std::vector<SampleCase> cases;
  for (int i = 0; i < count; ++i) cases.push_back(source.next());
  return cases;
}

TEST_P(CudaSampling, GivesTheTokensAndBitsOfTheHost) {
  SampleCases source(1, vocab_size());
  int seen = 0;
  for (const int count : {1, 2, 3, 5, 17, 31, 64, 65, 128, 200, 256, 7, 256}) {
    const std::vector<SampleCase> cases = next_cases(source, count);
    std::vector<SampleRow> rows;
    for (int i = 0; i < count; ++i) rows.push_back(cases[static_cast<size_t>(i)].row(i));
    const cuda::CudaLogits logits = upload(cases);
    std::vector<Sampled> sampled(rows.size());
    logits.sample(rows, sampled);
    for (size_t i = 0; i < cases.size(); ++i, ++seen) {
      const SamplingParams& of = cases[i].params;
      SCOPED_TRACE(testing::Message() << seen << ": temperature " << of.temperature << ", top_k "
                                      << of.top_k << ", top_p " << of.top_p << ", min_p "
                                      << of.min_p << ", top " << cases[i].top_logprobs);
      expect_same(sampled[i], sample_token(cases[i].logits, rows[i]));
    }
    if (HasFailure()) return;
  }
}

// Nothing of a call stays behind, and no other row matters.
TEST_P(CudaSampling, GivesTheSameAgainAndAlone) {
  SampleCases source(2, vocab_size());
  const std::vector<SampleCase> cases = next_cases(source, 48);
  std::vector<SampleRow> rows;
  for (int i = 0; i < 48; ++i) rows.push_back(cases[static_cast<size_t>(i)].row(i));
  const cuda::CudaLogits logits = upload(cases);
  std::vector<Sampled> first(rows.size());
  logits.sample(rows, first);
  for (int round = 0; round < 20; ++round) {
    std::vector<Sampled> again(rows.size());
    logits.sample(rows, again);
    for (size_t i = 0; i < rows.size(); ++i) expect_same(again[i], first[i]);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    Sampled alone;
    logits.sample({&rows[i], 1}, {&alone, 1});
    expect_same(alone, first[i]);
  }
}

// More biases than a batch takes, more log-probabilities than a state has room for.
TEST_P(CudaSampling, LeavesToTheHostWhatDoesNotFit) {
  SampleCases source(3, vocab_size());
  std::vector<SampleCase> cases = next_cases(source, 3);
  for (SampleCase& of : cases) of.params.temperature = 1;
  cases[0].params.logit_bias.assign(5000, {0, 0.001F});
  cases[1].top_logprobs = 21;
  std::vector<SampleRow> rows;
  for (int i = 0; i < 3; ++i) rows.push_back(cases[static_cast<size_t>(i)].row(i));
  const cuda::CudaLogits logits = upload(cases);
  std::vector<Sampled> sampled(rows.size());
  logits.sample(rows, sampled);
  for (size_t i = 0; i < rows.size(); ++i) {
    expect_same(sampled[i], sample_token(cases[i].logits, rows[i]));
  }
}

TEST_P(CudaSampling, ScoresAsTheHostDoes) {
  SampleCases source(4, vocab_size());
  const std::vector<SampleCase> cases = next_cases(source, 200);
  std::vector<float> values;
  std::vector<ScoreRow> rows;
  for (int i = 0; i < 200; ++i) {
    const auto& logits = cases[static_cast<size_t>(i)].logits;
    values.insert(values.end(), logits.begin(), logits.end());
    rows.push_back({i, i * 7919 % vocab_size(), i % 3 == 0 ? i % 21 : 0});
  }
  const HostLogits host(values, 200, vocab_size(), vocab_size());
  std::vector<TokenScore> expected(rows.size()), scores(rows.size());
  host.score(rows, expected);
  upload(cases).score(rows, scores);
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(std::bit_cast<uint64_t>(scores[i].logprob),
              std::bit_cast<uint64_t>(expected[i].logprob));
    expect_same_top(scores[i].top, expected[i].top);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CudaSampling,
                         testing::Values(1, 2, 33, 4099, 32000, 128256, 151937),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace trtmc
#endif
