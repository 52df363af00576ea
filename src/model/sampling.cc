#include "model/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/error.h"
#include "model/sampling_math.h"

namespace trtmc {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct Candidate {
  TokenId token;
  float score;
  uint64_t mass;
};

// The order in which filters take tokens. Total, since ids differ.
bool more_likely(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.token < b.token);
}

void require(bool holds, std::string_view name, double value, std::string_view expected) {
  if (holds) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}, expected {}", name, value, expected));
}

bool is_allowed(std::span<const uint32_t> allowed, size_t token) {
  return allowed.empty() ||
         (token / 32 < allowed.size() && (allowed[token / 32] >> token % 32 & 1));
}

TokenId smallest_allowed(std::span<const uint32_t> allowed, size_t vocab_size) {
  for (size_t token = 0; token < vocab_size; ++token) {
    if (is_allowed(allowed, token)) return static_cast<TokenId>(token);
  }
  return 0;
}

void apply_penalties(std::span<float> scores, const SampleRow& row) {
  // In float, as Transformers computes on float scores.
  const auto repetition = static_cast<float>(row.params->repetition_penalty);
  const auto presence = static_cast<float>(row.params->presence_penalty);
  const auto frequency = static_cast<float>(row.params->frequency_penalty);
  const auto repeat = [&](TokenId token) {
    float& score = scores[static_cast<size_t>(token)];
    score = repeated_score(score, repetition);
  };
  for (const TokenId token : row.prompt_tokens) repeat(token);
  for (const TokenCount& seen : row.counts) {
    if (!seen.in_prompt) repeat(seen.token);
    float& score = scores[static_cast<size_t>(seen.token)];
    score = counted_score(score, seen.count, presence, frequency);
  }
}

// The scores from which the token is taken: bias, penalties and mask applied. The logits themselves
// if there are none of these, else a copy that lives until this thread's next call.
std::span<const float> adjusted_scores(std::span<const float> logits, const SampleRow& row) {
  const SamplingParams& params = *row.params;
  if (!changes_scores(row)) return logits;

  thread_local std::vector<float> scores;
  scores.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : params.logit_bias) {
    TRTMC_CHECK(token >= 0 && static_cast<size_t>(token) < scores.size(), "a bias of no token");
    float& score = scores[static_cast<size_t>(token)];
    score = sum(score, bias);
  }
  if (penalties_change_scores(row)) apply_penalties(scores, row);
  if (!row.allowed.empty()) {
    for (size_t token = 0; token < scores.size(); ++token) {
      if (!is_allowed(row.allowed, token)) scores[token] = kMinusInfinity;
    }
  }
  return scores;
}

// The largest score's token, the smaller id of equals; -1 if none is above minus infinity.
// Independent lanes, so that the pass over the vocabulary becomes vector compares and selects.
TokenId argmax(std::span<const float> scores) {
  constexpr size_t kLanes = 16;
  float best[kLanes];
  int32_t token[kLanes];
  std::fill_n(best, kLanes, kMinusInfinity);
  std::fill_n(token, kLanes, -1);
  const size_t whole = scores.size() / kLanes * kLanes;
  const float* block = scores.data();
  for (size_t i = 0; i < whole; i += kLanes, block += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const bool better = block[lane] > best[lane];
      best[lane] = better ? block[lane] : best[lane];
      token[lane] = better ? static_cast<int32_t>(i + lane) : token[lane];
    }
  }
  float winner = kMinusInfinity;
  TokenId winner_token = -1;
  const auto meet = [&](float score, TokenId id) {
    if (score > winner || (score == winner && id >= 0 && id < winner_token)) {
      winner = score;
      winner_token = id;
    }
  };
  for (size_t lane = 0; lane < kLanes; ++lane) meet(best[lane], token[lane]);
  for (size_t i = whole; i < scores.size(); ++i) meet(scores[i], static_cast<TokenId>(i));
  return winner_token;
}

// The k-th largest score, or minus infinity if there are fewer. A heap of the k largest: nearly all
// of a vocabulary fails the one comparison with its smallest.
float kth_largest(std::span<const float> scores, size_t k) {
  thread_local std::vector<float> heap;
  heap.clear();
  for (const float score : scores) {
    if (!(score > kMinusInfinity)) continue;
    if (heap.size() < k) {
      heap.push_back(score);
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    } else if (score > heap.front()) {
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      heap.back() = score;
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  }
  return heap.size() < k ? kMinusInfinity : heap.front();
}

uint64_t sum_of_masses(std::span<const Candidate> candidates) {
  uint64_t total = 0;
  for (const Candidate& candidate : candidates) total += candidate.mass;
  return total;
}

// Selects by halves: the least likely candidate of the smallest set whose mass is at least
// `needed`. Reorders `pool`.
Candidate find_nucleus_edge(std::vector<Candidate>& pool, uint64_t needed) {
  size_t low = 0, high = pool.size();
  const auto at = [&](size_t i) { return pool.begin() + static_cast<std::ptrdiff_t>(i); };
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    std::nth_element(at(low), at(middle), at(high), more_likely);
    const uint64_t mass = sum_of_masses({&pool[low], middle - low});
    if (mass >= needed) {
      high = middle;
    } else {
      needed -= mass;
      low = middle;
    }
  }
  return pool[low];
}

void keep_top_p(std::vector<Candidate>& candidates, double top_p, int bits) {
  // Most nuclei lie within the few tokens above this mass; then the rest need not be touched.
  const uint64_t pool_floor = uint64_t{1} << bits >> 14;
  thread_local std::vector<Candidate> pool;
  pool.clear();
  uint64_t total = 0, pooled = 0;
  for (const Candidate& candidate : candidates) {
    total += candidate.mass;
    if (candidate.mass < pool_floor) continue;
    pooled += candidate.mass;
    pool.push_back(candidate);
  }
  const uint64_t needed = nucleus_mass(top_p, total);
  if (pooled < needed) pool = candidates;
  const Candidate edge = find_nucleus_edge(pool, needed);
  std::erase_if(candidates, [&](const Candidate& c) { return more_likely(edge, c); });
}

// One block of a row, so that masses come out of vector instructions.
constexpr size_t kBlock = 16;
std::array<uint64_t, kBlock> block_masses(const float* scores, const MassScale& scale) {
  double wide[kBlock];
  for (size_t i = 0; i < kBlock; ++i) wide[i] = scores[i];
  std::array<uint64_t, kBlock> masses;
  for (size_t i = 0; i < kBlock; ++i) masses[i] = mass_of(wide[i], scale);
  return masses;
}

// Every score above minus infinity, ids rising, with its mass.
void take_all(std::span<const float> scores, const MassScale& scale,
              std::vector<Candidate>& candidates) {
  candidates.resize(scores.size());
  size_t taken = 0;
  const auto take = [&](size_t i, uint64_t mass) {
    candidates[taken] = {static_cast<TokenId>(i), scores[i], mass};
    taken += scores[i] > kMinusInfinity ? 1 : 0;
  };
  size_t i = 0;
  for (; i + kBlock <= scores.size(); i += kBlock) {
    const auto masses = block_masses(&scores[i], scale);
    for (size_t lane = 0; lane < kBlock; ++lane) take(i + lane, masses[lane]);
  }
  for (; i < scores.size(); ++i) take(i, mass_of(scores[i], scale));
  candidates.resize(taken);
}

// What is left to draw from, ids rising; empty if every score is minus infinity. Lives until this
// thread's next call.
std::vector<Candidate>& filtered_candidates(std::span<const float> scores,
                                            const SamplingParams& params) {
  thread_local std::vector<Candidate> candidates;
  candidates.clear();
  const TokenId best = argmax(scores);
  if (best < 0) return candidates;

  const MassScale scale =
      mass_scale(scores[static_cast<size_t>(best)], params.temperature, mass_bits(scores.size()));
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < scores.size()) {
    const float lowest = kth_largest(scores, static_cast<size_t>(params.top_k));
    for (size_t i = 0; i < scores.size(); ++i) {
      const float score = scores[i];
      if (!(score > kMinusInfinity && score >= lowest)) continue;
      candidates.push_back({static_cast<TokenId>(i), score, mass_of(score, scale)});
    }
  } else {
    take_all(scores, scale, candidates);
  }
  if (params.top_p < 1) keep_top_p(candidates, params.top_p, scale.bits);
  if (params.min_p > 0) {
    const uint64_t least = least_mass(params.min_p, scale.bits);
    std::erase_if(candidates, [&](const Candidate& c) { return c.mass < least; });
  }
  return candidates;
}

TokenId draw_token(std::span<const Candidate> candidates, uint64_t uniform) {
  const uint64_t target = draw_target(uniform, sum_of_masses(candidates));
  uint64_t up_to = 0;
  for (const Candidate& candidate : candidates) {
    up_to += candidate.mass;
    if (up_to > target) return candidate.token;
  }
  return -1;  // Never: the target is below the sum.
}

// -1 if the logits are no numbers.
TokenId choose_token(std::span<const float> logits, const SampleRow& row) {
  const std::span<const float> scores = adjusted_scores(logits, row);
  TokenId token = -1;
  if (row.params->temperature == 0) {
    token = argmax(scores);
  } else if (const auto& candidates = filtered_candidates(scores, *row.params);
             !candidates.empty()) {
    token = draw_token(candidates, uniform_bits(row.params->seed, row.draw));
  }
  if (token >= 0 || argmax(logits) < 0) return token;
  return smallest_allowed(row.allowed, logits.size());
}

Normaliser normaliser_of(std::span<const float> logits) {
  const TokenId best = argmax(logits);
  if (best < 0) return {};
  const float highest = logits[static_cast<size_t>(best)];
  const MassScale scale = mass_scale(highest, 1, mass_bits(logits.size()));
  uint64_t total = 0;
  size_t i = 0;
  // The mass of what is no number or minus infinity is 0.
  for (; i + kBlock <= logits.size(); i += kBlock) {
    const auto masses = block_masses(&logits[i], scale);
    for (const uint64_t mass : masses) total += mass;
  }
  for (; i < logits.size(); ++i) total += mass_of(logits[i], scale);
  return {highest, scale.bits, total};
}

std::vector<TokenLogprob> most_likely(std::span<const float> logits, int count,
                                      const Normaliser& normaliser) {
  if (count <= 0) return {};
  const auto size = std::min(static_cast<size_t>(count), logits.size());
  const float lowest = kth_largest(logits, size);
  std::vector<Candidate> likely;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] >= lowest) likely.push_back({static_cast<TokenId>(i), logits[i], 0});
  }
  std::sort(likely.begin(), likely.end(), more_likely);
  if (likely.size() > size) likely.resize(size);

  std::vector<TokenLogprob> top;
  top.reserve(likely.size());
  for (const Candidate& c : likely) {
    top.push_back({c.token, static_cast<float>(normaliser.logprob(c.score))});
  }
  return top;
}

}  // namespace

Normaliser::Normaliser(float highest, int bits, uint64_t total)
    : highest_(highest), log_sum_(std::log(std::ldexp(static_cast<double>(total), -bits))) {}

double Normaliser::logprob(float logit) const {
  if (!(logit > kMinusInfinity)) return kMinusInfinity;
  // Equal infinities have no difference.
  return (logit == highest_ ? 0 : logit - highest_) - log_sum_;
}

bool has_penalties(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0;
}

bool penalties_change_scores(const SampleRow& row) {
  return has_penalties(*row.params) && !(row.counts.empty() && row.prompt_tokens.empty());
}

bool changes_scores(const SampleRow& row) {
  return !row.params->logit_bias.empty() || penalties_change_scores(row) || !row.allowed.empty();
}

void validate(const SamplingParams& params) {
  const auto within = [](double value, double low, double high) {
    return value >= low && value <= high;  // False for NaN.
  };
  require(std::isfinite(params.temperature) && params.temperature >= 0, "temperature",
          params.temperature, "a number of at least 0");
  require(params.top_k >= 0, "top_k", params.top_k, "a number of at least 0");
  require(within(params.top_p, 0, 1), "top_p", params.top_p, "a number from 0 to 1");
  require(within(params.min_p, 0, 1), "min_p", params.min_p, "a number from 0 to 1");
  require(std::isfinite(params.repetition_penalty) && params.repetition_penalty > 0,
          "repetition_penalty", params.repetition_penalty, "a number above 0");
  require(within(params.presence_penalty, -2, 2), "presence_penalty", params.presence_penalty,
          "a number from -2 to 2");
  require(within(params.frequency_penalty, -2, 2), "frequency_penalty", params.frequency_penalty,
          "a number from -2 to 2");
  for (const auto& [token, bias] : params.logit_bias) {
    require(token >= 0, "logit_bias", token, "the id of a token");
    require(within(bias, -100, 100), "logit_bias", bias, "a number from -100 to 100");
  }
}

Sampled sample_token(std::span<const float> logits, const SampleRow& row) {
  Sampled sampled{choose_token(logits, row), 0, {}};
  if (row.top_logprobs >= 0 && sampled.token >= 0) {
    const Normaliser normaliser = normaliser_of(logits);
    const float logit = logits[static_cast<size_t>(sampled.token)];
    sampled.logprob = static_cast<float>(normaliser.logprob(logit));
    sampled.top = most_likely(logits, row.top_logprobs, normaliser);
  }
  return sampled;
}

std::vector<TokenProbability> sampling_distribution(std::span<const float> logits,
                                                    const SampleRow& row) {
  if (row.params->temperature > 0) {
    const auto& candidates = filtered_candidates(adjusted_scores(logits, row), *row.params);
    const auto total = static_cast<double>(sum_of_masses(candidates));
    std::vector<TokenProbability> distribution;
    distribution.reserve(candidates.size());
    for (const Candidate& c : candidates) {
      distribution.push_back({c.token, static_cast<double>(c.mass) / total});
    }
    if (!distribution.empty()) return distribution;
  }
  const TokenId token = choose_token(logits, row);
  if (token < 0) return {};
  return {{token, 1}};
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, int count) {
  return most_likely(logits, count, normaliser_of(logits));
}

double log_probability(std::span<const float> logits, TokenId token) {
  TRTMC_CHECK(token >= 0 && static_cast<size_t>(token) < logits.size(), "an id out of range");
  return normaliser_of(logits).logprob(logits[static_cast<size_t>(token)]);
}

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kKeyStep0 = 0x9E3779B9, kKeyStep1 = 0xBB67AE85;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0], product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kKeyStep0;
    key[1] += kKeyStep1;
  }
  return counter;
}

uint64_t uniform_bits(uint64_t seed, uint64_t draw) {
  constexpr int kUnused = 64 - 53;
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  const auto words = philox({low(draw), high(draw), 0, 0}, {low(seed), high(seed)});
  return (uint64_t{words[0]} << 32 | words[1]) >> kUnused << kUnused;
}

double uniform_draw(uint64_t seed, uint64_t draw) {
  return static_cast<double>(uniform_bits(seed, draw)) * 0x1p-64;
}

}  // namespace trtmc
