#include "backends/cuda/sample_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <random>

#include "backends/cuda/kernels/sample_steps.h"
#include "backends/host_logits.h"
#include "tests/support/sample_cases.h"

namespace trtmc::cuda {
namespace {

// The threads of a block one after the other, in an order that changes.
class HostBlock {
 public:
  explicit HostBlock(std::mt19937& random) : random_(random) {}
  template <typename F>
  void each(F f) {
    const auto first = static_cast<int>(random_() % kSampleThreads);
    for (int i = 0; i < kSampleThreads; ++i) f((first + i) % kSampleThreads);
  }
  template <typename T>
  T load(const T* from) const {
    return *from;
  }
  void add(uint64_t* to, uint64_t amount) { *to += amount; }
  void max(uint64_t* to, uint64_t value) { *to = std::max(*to, value); }
  uint32_t add_shared(uint32_t* to, uint32_t amount) { return std::exchange(*to, *to + amount); }
  int32_t take_slot(int32_t* next) { return (*next)++; }
  bool is_last(int32_t* arrived) {
    if (++*arrived < kRowParts) return false;
    *arrived = 0;
    return true;
  }

 private:
  std::mt19937& random_;
};

// What a device does with a batch, the blocks of a row in any order.
class HostDevice {
 public:
  HostDevice(int vocab_size, uint32_t seed)
      : stride_((vocab_size + 3) / 4 * 4),
        random_(seed),
        bytes_(kSampleMemoryBytes / sizeof(uint64_t)),
        scores_(static_cast<size_t>(kMostScoredRows * stride_)) {}

  SampleMemory memory() {
    const auto bytes = std::as_writable_bytes(std::span(bytes_));
    return {bytes, bytes.data(), scores_.data(), stride_};
  }

  void run(const SampleBatch& batch) {
    for_each_pass(batch.selects_top_k(), batch.selects_top_p(), [&](SamplePass pass, int digit) {
      const SamplePassArgs args{.pass = pass,
                                .digit = digit,
                                .num_jobs = batch.num_jobs(),
                                .jobs = batch.device_jobs(),
                                .states = batch.device_states(),
                                .amounts = amounts_.data(),
                                .shares = shares_.data(),
                                .arrived = arrived_.data()};
      std::vector<int> blocks(static_cast<size_t>(batch.num_jobs() * kRowParts));
      std::iota(blocks.begin(), blocks.end(), 0);
      std::ranges::shuffle(blocks, random_);
      HostBlock block(random_);
      for (const int b : blocks) {
        run_sample_pass(block, *shared_, args, b / kRowParts, b % kRowParts);
      }
    });
    EXPECT_TRUE(std::ranges::all_of(amounts_, [](uint64_t x) { return x == 0; }));
    EXPECT_TRUE(std::ranges::all_of(arrived_, [](int32_t x) { return x == 0; }));
  }

 private:
  int64_t stride_;
  std::mt19937 random_;
  std::vector<uint64_t> bytes_;
  std::vector<float> scores_;
  std::vector<uint64_t> amounts_ = std::vector<uint64_t>(kMostSampleJobs * kDigitValues);
  std::vector<RowShare> shares_ = std::vector<RowShare>(kMostSampleJobs * kRowParts);
  std::vector<int32_t> arrived_ = std::vector<int32_t>(kMostSampleJobs);
  std::unique_ptr<SampleShared> shared_ = std::make_unique<SampleShared>();
};

void expect_same_bits(const Sampled& device, const Sampled& host) {
  EXPECT_EQ(device.token, host.token);
  EXPECT_EQ(std::bit_cast<uint32_t>(device.logprob), std::bit_cast<uint32_t>(host.logprob));
  ASSERT_EQ(device.top.size(), host.top.size());
  for (size_t i = 0; i < host.top.size(); ++i) {
    EXPECT_EQ(device.top[i].token, host.top[i].token) << i;
    EXPECT_EQ(std::bit_cast<uint32_t>(device.top[i].logprob),
              std::bit_cast<uint32_t>(host.top[i].logprob));
  }
}

// What the filters of a job left, of which it draws one token.
std::vector<TokenId> left_tokens(const SampleJob& job, const SampleState& state) {
  const float* scores = job.scores != nullptr ? job.scores : job.logits;
  const float highest = score_of_key(static_cast<uint32_t>(state.best >> 32));
  const MassScale scale{finite_score(highest), job.exponents_per_score, job.mass_bits};
  const uint32_t edge = job.top_p < 1 ? state.edge_key : state.kth_key;
  uint64_t at_edge = job.top_p < 1 ? state.edge_kept : ~uint64_t{0};
  std::vector<TokenId> tokens;
  for (TokenId token = 0; token < job.vocab_size; ++token) {
    const uint32_t key = score_key(scores[token]);
    if (key == 0 || key < edge || (key == edge && at_edge == 0)) continue;
    if (key == edge) --at_edge;
    if (mass_of(scores[token], scale) >= job.least_mass) tokens.push_back(token);
  }
  return tokens;
}

std::vector<TokenId> left_tokens(const SampleCase& of) {
  std::vector<TokenId> tokens;
  for (const auto& left : sampling_distribution(of.logits, of.row(0))) tokens.push_back(left.token);
  return tokens;
}

// Samples until a batch is full, and runs it; how many rows the device answered.
int compare_batch(SampleCases& cases, HostDevice& device, int vocab_size) {
  SampleBatch batch(vocab_size, device.memory());
  std::vector<std::unique_ptr<SampleCase>> taken;
  while (true) {
    auto of = std::make_unique<SampleCase>(cases.next());
    const auto added = batch.add(of->row(static_cast<int>(taken.size())), of->logits.data());
    EXPECT_NE(added, SampleBatch::Added::kUnsuited);
    if (added != SampleBatch::Added::kTaken) break;
    taken.push_back(std::move(of));
  }
  device.run(batch);
  int answered = 0, job = -1;
  for (int i = 0; i < batch.num_rows(); ++i) {
    const SampleCase& of = *taken[static_cast<size_t>(i)];
    const int own = ++job;
    if (of.top_logprobs >= 0) ++job;
    const SampleRow row = of.row(i);
    const Sampled host = sample_token(of.logits, row);
    Sampled sampled;
    if (!batch.read(i, sampled)) continue;
    ++answered;
    SCOPED_TRACE(testing::Message() << "row " << i << " temperature " << of.params.temperature
                                    << " top_k " << of.params.top_k << " top_p " << of.params.top_p
                                    << " min_p " << of.params.min_p << " top " << of.top_logprobs);
    expect_same_bits(sampled, host);
    if (of.params.temperature > 0) {
      EXPECT_EQ(left_tokens(batch.device_jobs()[own], batch.device_states()[own]), left_tokens(of));
    }
    if (testing::Test::HasFailure()) break;
  }
  return answered;
}

TEST(SampleBatch, ScoresAsTheHostDoes) {
  constexpr int kVocabulary = 1000, kRows = kMostSampleJobs;
  SampleCases cases(5, kVocabulary);
  HostDevice device(kVocabulary, 4);
  SampleBatch batch(kVocabulary, device.memory());
  std::vector<float> values;
  for (int i = 0; i < kRows; ++i) {
    const std::vector<float> logits = cases.next().logits;
    values.insert(values.end(), logits.begin(), logits.end());
  }
  std::vector<ScoreRow> rows;
  for (int i = 0; i < kRows; ++i) {
    rows.push_back({i, i * 13, i % (kMostTopLogprobs + 1)});
    ASSERT_EQ(batch.add(rows.back(), &values[static_cast<size_t>(i) * kVocabulary]),
              SampleBatch::Added::kTaken);
  }
  EXPECT_EQ(batch.add(rows[0], values.data()), SampleBatch::Added::kFull);
  device.run(batch);
  std::vector<TokenScore> host(kRows);
  HostLogits(values, kRows, kVocabulary, kVocabulary).score(rows, host);
  int answered = 0;
  for (int i = 0; i < kRows; ++i) {
    TokenScore score;
    if (!batch.read(i, score)) continue;
    const TokenScore& expected = host[static_cast<size_t>(i)];
    ++answered;
    EXPECT_EQ(std::bit_cast<uint64_t>(score.logprob), std::bit_cast<uint64_t>(expected.logprob));
    expect_same_bits({0, 0, score.top}, {0, 0, expected.top});
  }
  EXPECT_GT(answered, kRows / 2);
}

TEST(SampleBatch, LeavesWhatDoesNotFit) {
  constexpr int kVocabulary = 64;
  HostDevice device(kVocabulary, 4);
  SampleBatch batch(kVocabulary, device.memory());
  const std::vector<float> logits(kVocabulary, 1);
  const std::vector<uint32_t> allowed(2, 3);
  SampleCase of{.logits = logits, .params = {}, .prompt = {}, .counts = {}, .allowed = allowed};
  of.top_logprobs = kMostTopLogprobs + 1;
  EXPECT_EQ(batch.add(of.row(0), logits.data()), SampleBatch::Added::kUnsuited);
  of.top_logprobs = -1;
  of.params.logit_bias.assign(1025, {0, 1});
  EXPECT_EQ(batch.add(of.row(0), logits.data()), SampleBatch::Added::kUnsuited);
  of.params.logit_bias.clear();
  for (int i = 0; i < kMostScoredRows; ++i) {
    ASSERT_EQ(batch.add(of.row(i), logits.data()), SampleBatch::Added::kTaken);
  }
  EXPECT_EQ(batch.add(of.row(0), logits.data()), SampleBatch::Added::kFull);
  of.allowed.clear();  // Its scores are the logits.
  EXPECT_EQ(batch.add(of.row(0), logits.data()), SampleBatch::Added::kTaken);
}

class SampleBatches : public testing::TestWithParam<int> {};

TEST_P(SampleBatches, GiveTheTokensAndBitsOfTheHost) {
  const int vocab_size = GetParam();
  // Other rows with --gtest_shuffle --gtest_random_seed=N.
  const int seed = testing::UnitTest::GetInstance()->random_seed();
  SampleCases cases(20260904U + static_cast<uint32_t>(seed), vocab_size);
  HostDevice device(vocab_size, 3);
  const int batches = vocab_size > 10000 ? 1 : 5;
  int answered = 0;
  for (int i = 0; i < batches && !HasFailure(); ++i) {
    answered += compare_batch(cases, device, vocab_size);
  }
  // Rows without numbers are the host's, and those with fewer than are asked for.
  EXPECT_GT(answered, batches * 20);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SampleBatches,
                         testing::Values(1, 2, 31, 33, 255, 1000, 4099, 128256),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace trtmc::cuda
