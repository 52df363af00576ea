// The arithmetic of sampling, once for the host and for devices: the same logits give the same bits
// on both, since every operation is one that IEEE 754 or the integers define, in the same order.
//
// A token's mass is how likely it is beside the most likely one, in fixed point: 2^mass_bits is as
// likely. Sums of masses are exact, so it does not matter in which order or by how many threads
// they are added, and what compares them compares integers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define TRTMC_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TRTMC_HOST_DEVICE inline
#endif

namespace trtmc {

// ---- Products and sums of one rounding each: a device's compiler would fuse them.

#ifdef __CUDA_ARCH__
__device__ __forceinline__ float product(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float sum(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double product(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double sum(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ float quotient(float a, float b) { return __fdiv_rn(a, b); }
#else
TRTMC_HOST_DEVICE float product(float a, float b) { return a * b; }
TRTMC_HOST_DEVICE float sum(float a, float b) { return a + b; }
TRTMC_HOST_DEVICE double product(double a, double b) { return a * b; }
TRTMC_HOST_DEVICE double sum(double a, double b) { return a + b; }
TRTMC_HOST_DEVICE float quotient(float a, float b) { return a / b; }
#endif

// ---- Scores: logits after bias and penalties, in float as Transformers computes them.

TRTMC_HOST_DEVICE float repeated_score(float score, float repetition_penalty) {
  return score < 0 ? product(score, repetition_penalty) : quotient(score, repetition_penalty);
}

TRTMC_HOST_DEVICE float counted_score(float score, int count, float presence_penalty,
                                      float frequency_penalty) {
  const float penalty =
      sum(presence_penalty, product(static_cast<float>(count), frequency_penalty));
  return sum(score, -penalty);
}

// Rises with the score; zeros of either sign have the same. 0: minus infinity or no number.
TRTMC_HOST_DEVICE uint32_t score_key(float score) {
  const auto bits = std::bit_cast<uint32_t>(sum(score, 0.0F));
  const uint32_t key = bits >> 31 != 0 ? ~bits : bits | 0x80000000U;
  constexpr uint32_t kPlusInfinity = 0xff800000U, kMinusInfinity = 0x007fffffU;
  return key > kMinusInfinity && key <= kPlusInfinity ? key : 0;
}

// The score of a key that is not 0.
TRTMC_HOST_DEVICE float score_of_key(uint32_t key) {
  return std::bit_cast<float>(key >> 31 != 0 ? key & 0x7fffffffU : ~key);
}

// ---- Masses

// As fine as leaves room for the sum of a whole vocabulary in 63 bits: 2^-46 for 128k tokens.
inline int mass_bits(size_t vocab_size) {
  constexpr int kFinest = 48;  // Below 2^52, as exp2_mass() needs.
  const int bits = 63 - static_cast<int>(std::bit_width(vocab_size));
  return bits < kFinest ? bits : kFinest;
}

// The integer next to 2^(exponent + bits), for an exponent of at most 0 and bits of at most 48. A
// NaN counts as minus infinity.
TRTMC_HOST_DEVICE uint64_t exp2_mass(double exponent, int bits) {
  constexpr double kLowest = -64;        // Any mass is 0 there.
  constexpr double kToWhole = 0x1.8p52;  // Added, the last bits are the nearest integer.
  constexpr double kToInteger = 0x1p52;  // Likewise, for what is not negative.
  constexpr int kExponentBias = 1023, kFractionBits = 52;
  const double x = exponent > kLowest ? exponent : kLowest;
  const double shifted = sum(x, kToWhole);
  const double f = sum(x, -sum(shifted, -kToWhole));  // Exact, in [-1/2, 1/2].
  // 2^f within 2^-50: (2^f - 1) / f interpolated at the zeros of Chebyshev's T10.
  double p = 0x1.e5e9f548e5726p-28;
  p = sum(product(p, f), 0x1.b6571de2f2351p-24);
  p = sum(product(p, f), 0x1.62bfe46117445p-20);
  p = sum(product(p, f), 0x1.ffcb76789860fp-17);
  p = sum(product(p, f), 0x1.4309130378460p-13);
  p = sum(product(p, f), 0x1.5d87fe908f88ap-10);
  p = sum(product(p, f), 0x1.3b2ab6fba385fp-7);
  p = sum(product(p, f), 0x1.c6b08d7044119p-5);
  p = sum(product(p, f), 0x1.ebfbdff82c590p-3);
  p = sum(product(p, f), 0x1.62e42fefa39f7p-1);
  p = sum(product(p, f), 1.0);
  const uint64_t power =
      (std::bit_cast<uint64_t>(shifted) + static_cast<uint64_t>(bits + kExponentBias))
      << kFractionBits;
  const double value = product(p, std::bit_cast<double>(power));
  return std::bit_cast<uint64_t>(sum(value, kToInteger)) - std::bit_cast<uint64_t>(kToInteger);
}

// Instead of plus infinity, so that equal infinities have a difference of 0.
TRTMC_HOST_DEVICE double finite_score(double score) {
  constexpr double kFarAboveFloats = 0x1p1000;
  return score > kFarAboveFloats ? kFarAboveFloats : score;
}

// How the scores of a row become masses.
struct MassScale {
  double highest;              // The most likely token's finite_score().
  double exponents_per_score;  // log2(e) / temperature.
  int bits;
};

TRTMC_HOST_DEVICE MassScale mass_scale(float highest, double temperature, int bits) {
  // Beyond these every difference of floats is nothing or everything. Finite, so that equal scores
  // have the product 0, which infinity times 0 is not.
  constexpr double kLeast = 0x1p-960, kMost = 0x1p960;
  const double exact = 0x1.71547652b82fep0 / temperature;
  const double least = exact > kLeast ? exact : kLeast;
  return {finite_score(highest), least < kMost ? least : kMost, bits};
}

// 0 for what is no number. Here and above there is nothing that a compiler could not do for several
// scores at once.
TRTMC_HOST_DEVICE uint64_t mass_of(double score, const MassScale& scale) {
  const double below = sum(finite_score(score), -scale.highest);
  return exp2_mass(product(below, scale.exponents_per_score), scale.bits);
}

// What the most likely tokens must have together at least. `total` > 0.
TRTMC_HOST_DEVICE uint64_t nucleus_mass(double top_p, uint64_t total) {
  const double exact = product(top_p, static_cast<double>(total));
  auto needed = static_cast<uint64_t>(exact);
  if (static_cast<double>(needed) < exact) ++needed;
  if (needed > total) return total;
  return needed > 0 ? needed : 1;
}

// What a token must have at least that is min_p times as likely as the most likely one.
TRTMC_HOST_DEVICE uint64_t least_mass(double min_p, int bits) {
  const double exact = product(min_p, static_cast<double>(uint64_t{1} << bits));
  const auto least = static_cast<uint64_t>(exact);
  return static_cast<double>(least) < exact ? least + 1 : least;
}

// The token is the first with more than this in the sum of the masses up to it, ids rising.
// `uniform`: a fraction of 64 bits.
TRTMC_HOST_DEVICE uint64_t draw_target(uint64_t uniform, uint64_t total) {
  constexpr uint64_t kLow = 0xffffffffU;
  const uint64_t low = (uniform & kLow) * (total & kLow);
  const uint64_t middle = (uniform >> 32) * (total & kLow) + (low >> 32);
  const uint64_t other = (uniform & kLow) * (total >> 32) + (middle & kLow);
  return (uniform >> 32) * (total >> 32) + (middle >> 32) + (other >> 32);
}

}  // namespace trtmc
