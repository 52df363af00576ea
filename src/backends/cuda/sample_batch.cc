#include "backends/cuda/sample_batch.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "model/sampling_math.h"

namespace trtmc::cuda {
namespace {

constexpr size_t kAlignment = 16;
constexpr size_t kMostBiases = 1024;  // Each thread reads them all.

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

constexpr size_t kJobsOffset = sizeof(SampleState) * kMostSampleJobs;
static_assert(kJobsOffset % kAlignment == 0 && sizeof(SampleJob) % alignof(SampleJob) == 0);
constexpr size_t kListsOffset =
    (kJobsOffset + sizeof(SampleJob) * kMostSampleJobs + kAlignment - 1) / kAlignment * kAlignment;

size_t list_bytes(const SampleRow& row) {
  const bool penalties = penalties_change_scores(row);
  return aligned(row.params->logit_bias.size() * sizeof(TokenBias)) +
         (penalties ? aligned(row.prompt_tokens.size_bytes()) +
                          aligned(row.counts.size() * sizeof(TokenSeen))
                    : 0) +
         aligned(row.allowed.size_bytes());
}

}  // namespace

SampleBatch::SampleBatch(int vocab_size, const SampleMemory& memory)
    : vocab_size_(vocab_size), memory_(memory), used_(kListsOffset) {
  TRTMC_CHECK(memory.host.size() == kSampleMemoryBytes, "memory of another size");
}

const SampleJob* SampleBatch::device_jobs() const {
  return reinterpret_cast<const SampleJob*>(memory_.device + kJobsOffset);
}

SampleState* SampleBatch::device_states() const {
  return reinterpret_cast<SampleState*>(memory_.device);
}

SampleState& SampleBatch::state(int job) const {
  return reinterpret_cast<SampleState*>(memory_.host.data())[job];
}

template <typename T>
T* SampleBatch::take(size_t count, const T*& on_device) {
  T* place = reinterpret_cast<T*>(memory_.host.data() + used_);
  on_device = reinterpret_cast<const T*>(memory_.device + used_);
  used_ += aligned(count * sizeof(T));
  TRTMC_CHECK(used_ <= memory_.host.size(), "a batch larger than its memory");
  return place;
}

SampleBatch::Added SampleBatch::add(const SampleRow& row, const float* logits) {
  const size_t lists = list_bytes(row);
  if (row.top_logprobs > kMostTopLogprobs || row.params->logit_bias.size() > kMostBiases ||
      lists > memory_.host.size() - kListsOffset) {
    return Added::kUnsuited;
  }
  const bool changes = changes_scores(row);
  if (num_jobs_ + 2 > kMostSampleJobs || lists > memory_.host.size() - used_ ||
      (changes && num_scored_ == kMostScoredRows)) {
    return Added::kFull;
  }
  const SamplingParams& params = *row.params;
  const bool draws = params.temperature > 0;
  rows_.push_back({num_jobs_, -1, row.top_logprobs});
  SampleJob& job = add_job(draws ? SampleKind::kDraw : SampleKind::kGreedy, logits);
  if (changes) {
    job.scores = memory_.scores + num_scored_++ * memory_.stride;
    add_lists(row, job);
  }
  if (draws) {
    job.exponents_per_score = mass_scale(0, params.temperature, job.mass_bits).exponents_per_score;
    job.top_k = params.top_k < vocab_size_ ? params.top_k : 0;
    job.top_p = params.top_p;
    job.least_mass = params.min_p > 0 ? least_mass(params.min_p, job.mass_bits) : 0;
    job.uniform = uniform_bits(params.seed, row.draw);
    selects_top_k_ = selects_top_k_ || job.top_k > 0;
    selects_top_p_ = selects_top_p_ || job.top_p < 1;
  }
  if (row.top_logprobs >= 0) add_most_likely(row.top_logprobs, -1, logits);
  return Added::kTaken;
}

SampleBatch::Added SampleBatch::add(const ScoreRow& row, const float* logits) {
  if (row.top_logprobs > kMostTopLogprobs) return Added::kUnsuited;
  if (num_jobs_ == kMostSampleJobs) return Added::kFull;
  TRTMC_CHECK(row.target >= 0 && row.target < vocab_size_, "an id out of range");
  rows_.push_back({-1, -1, row.top_logprobs});
  add_most_likely(row.top_logprobs, row.target, logits);
  return Added::kTaken;
}

SampleJob& SampleBatch::add_job(SampleKind kind, const float* logits) {
  auto& job = reinterpret_cast<SampleJob*>(memory_.host.data() + kJobsOffset)[num_jobs_];
  job = {};
  job.kind = kind;
  job.vocab_size = vocab_size_;
  job.logits = logits;
  job.mass_bits = mass_bits(static_cast<size_t>(vocab_size_));
  job.top_p = 1;
  job.target = -1;
  // Should the passes find no token, the row is left to the host.
  state(num_jobs_) = {};
  state(num_jobs_++).token = -1;
  return job;
}

void SampleBatch::add_most_likely(int num_top, TokenId target, const float* logits) {
  rows_.back().most_likely_job = num_jobs_;
  SampleJob& job = add_job(SampleKind::kMostLikely, logits);
  job.exponents_per_score = mass_scale(0, 1, job.mass_bits).exponents_per_score;
  job.top_k = std::min(std::max(num_top, 0), vocab_size_);
  job.target = target;
  selects_top_k_ = selects_top_k_ || job.top_k > 0;
}

void SampleBatch::add_lists(const SampleRow& row, SampleJob& job) {
  const SamplingParams& params = *row.params;
  const auto is_token = [&](TokenId token) { return token >= 0 && token < vocab_size_; };
  job.num_biases = static_cast<int32_t>(params.logit_bias.size());
  TokenBias* biases = take(params.logit_bias.size(), job.biases);
  for (const auto& [token, bias] : params.logit_bias) {
    TRTMC_CHECK(is_token(token), "a bias of no token");
    *biases++ = {token, bias};
  }
  if (penalties_change_scores(row)) {
    job.repetition_penalty = static_cast<float>(params.repetition_penalty);
    job.presence_penalty = static_cast<float>(params.presence_penalty);
    job.frequency_penalty = static_cast<float>(params.frequency_penalty);
    job.num_prompt_tokens = static_cast<int32_t>(row.prompt_tokens.size());
    std::ranges::copy(row.prompt_tokens, take(row.prompt_tokens.size(), job.prompt_tokens));
    job.num_seen = static_cast<int32_t>(row.counts.size());
    TokenSeen* seen = take(row.counts.size(), job.seen);
    for (const TokenCount& of : row.counts) *seen++ = {of.token, of.count, of.in_prompt ? 1 : 0};
  }
  if (!row.allowed.empty()) {
    job.num_allowed_words = static_cast<int32_t>(row.allowed.size());
    std::ranges::copy(row.allowed, take(row.allowed.size(), job.allowed));
  }
}

bool SampleBatch::read_top(const Row& row, double& logprob, float logit,
                           std::vector<TokenLogprob>& top) const {
  const SampleState& of = state(row.most_likely_job);
  top.clear();
  // No numbers, or tokens at minus infinity among the most likely ones.
  if (of.best == 0 || of.num_top < std::min(std::max(row.num_top, 0), vocab_size_)) return false;
  const Normaliser normaliser(score_of_key(static_cast<uint32_t>(of.best >> 32)),
                              mass_bits(static_cast<size_t>(vocab_size_)), of.total);
  logprob = normaliser.logprob(logit);
  std::vector<std::pair<float, TokenId>> likely;
  likely.reserve(static_cast<size_t>(of.num_top));
  for (int i = 0; i < of.num_top; ++i) likely.emplace_back(of.top_logits[i], of.top_tokens[i]);
  std::ranges::sort(likely, [](const auto& a, const auto& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  });
  for (const auto& [value, token] : likely) {
    top.push_back({token, static_cast<float>(normaliser.logprob(value))});
  }
  return true;
}

bool SampleBatch::read(int index, Sampled& out) const {
  const Row& row = rows_[static_cast<size_t>(index)];
  const SampleState& of = state(row.token_job);
  if (of.token < 0) return false;
  out = {of.token, 0, {}};
  if (row.most_likely_job < 0) return true;
  double logprob = 0;
  if (!read_top(row, logprob, of.logit, out.top)) return false;
  out.logprob = static_cast<float>(logprob);
  return true;
}

bool SampleBatch::read(int index, TokenScore& out) const {
  const Row& row = rows_[static_cast<size_t>(index)];
  return read_top(row, out.logprob, state(row.most_likely_job).logit, out.top);
}

}  // namespace trtmc::cuda
