#include "measure/roofs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

namespace trtmc {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Keeps the compiler from dropping what was computed.
std::atomic<uint64_t> sink;

void keep(const void* data) {
  uint64_t word = 0;
  std::memcpy(&word, data, sizeof(word));
  sink += word;
}

constexpr int64_t kRounds = 20'000'000;
constexpr int kChains = 12;  // Enough to hide the latency of a multiply-add.

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void multiply_add_512() {
  __m512 sums[kChains] = {};
  const __m512 factor = _mm512_set1_ps(0.5F);
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(sum, factor, factor);
      asm volatile("" : "+v"(sum));
    }
  }
  sink += static_cast<uint64_t>(_mm512_cvtss_f32(sums[0]));
}

__attribute__((target("avx2,fma"))) void multiply_add_256() {
  __m256 sums[kChains] = {};
  const __m256 factor = _mm256_set1_ps(0.5F);
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(sum, factor, factor);
      asm volatile("" : "+x"(sum));
    }
  }
  sink += static_cast<uint64_t>(_mm256_cvtss_f32(sums[0]));
}

__attribute__((target("avx512f,avx512vnni"))) void byte_dots_512() {
  __m512i sums[kChains] = {};
  const __m512i factor = _mm512_set1_epi8(3);
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, factor, factor);
      asm volatile("" : "+v"(sum));
    }
  }
  keep(sums);
}

__attribute__((target("avx2,avxvnni"))) void byte_dots_256() {
  __m256i sums[kChains] = {};
  const __m256i factor = _mm256_set1_epi8(3);
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m256i& sum : sums) {
      sum = _mm256_dpbusd_avx_epi32(sum, factor, factor);
      asm volatile("" : "+x"(sum));
    }
  }
  keep(sums);
}

// Of products in 16 bits, pairs of them, and sums in 32.
__attribute__((target("avx2"))) void byte_products_256() {
  __m256i sums[kChains] = {};
  __m256i factor = _mm256_set1_epi8(3);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t round = 0; round < kRounds; ++round) {
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(factor));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(factor, factor), ones));
      asm volatile("" : "+x"(sum));
    }
  }
  keep(sums);
}

bool has_avxvnni() {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax >> 4 & 1) != 0;
}
#elif defined(__aarch64__)
void multiply_add_128() {
  float32x4_t sums[2 * kChains] = {};  // Up to four units, each four cycles late.
  const float32x4_t factor = vdupq_n_f32(0.5F);
  for (int64_t round = 0; round < kRounds / 2; ++round) {
    for (float32x4_t& sum : sums) {
      sum = vfmaq_f32(factor, sum, factor);
      asm volatile("" : "+w"(sum));
    }
  }
  sink += static_cast<uint64_t>(vgetq_lane_f32(sums[0], 0));
}

__attribute__((target("arch=armv8.2-a+dotprod"))) void byte_dots_128() {
  int32x4_t sums[2 * kChains] = {};
  const int8x16_t factor = vdupq_n_s8(3);
  for (int64_t round = 0; round < kRounds / 2; ++round) {
    for (int32x4_t& sum : sums) {
      sum = vdotq_s32(sum, factor, factor);
      asm volatile("" : "+w"(sum));
    }
  }
  keep(sums);
}
#endif

// Adds up what lies in `kStreams` stretches of `bytes` bytes, side by side: several streams keep
// more of the memory's banks and the core's buffers busy than one.
constexpr size_t kStreams = 4;
constexpr size_t kLine = 64;
constexpr size_t kPrefetchBytes = 1024;

void read_streams(const std::byte* from, size_t bytes) {
  uint64_t sums[kStreams][kLine / sizeof(uint64_t)] = {};
  for (size_t at = 0; at < bytes; at += kLine) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      const std::byte* line = from + stream * bytes + at;
      __builtin_prefetch(line + kPrefetchBytes);
      uint64_t words[kLine / sizeof(uint64_t)];
      std::memcpy(words, line, kLine);
      for (size_t i = 0; i < kLine / sizeof(uint64_t); ++i) sums[stream][i] += words[i];
    }
  }
  for (const auto& stream : sums) {
    for (const uint64_t sum : stream) sink += sum;
  }
}

}  // namespace

double read_bandwidth(ThreadPool& pool, std::span<const std::byte> memory) {
  // In pieces, handed out as threads come free.
  constexpr size_t kSmallestPiece = kStreams * kLine;
  const size_t piece_bytes =
      std::min(size_t{1} << 20, memory.size() / kSmallestPiece * kSmallestPiece);
  if (piece_bytes == 0) return 0;
  const size_t num_pieces = memory.size() / piece_bytes;
  std::atomic<size_t> next = 0;
  const auto start = Clock::now();
  pool.run([&](int) {
    for (size_t piece = next++; piece < num_pieces; piece = next++) {
      read_streams(memory.data() + piece * piece_bytes, piece_bytes / kStreams);
    }
  });
  return static_cast<double>(num_pieces * piece_bytes) / seconds_since(start);
}

double multiply_add_peak(ThreadPool& pool) {
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512f");
  if (!wide && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) return 0;
  const auto start = Clock::now();
  pool.run([&](int) { wide ? multiply_add_512() : multiply_add_256(); });
  const double operations = 2.0 * kRounds * kChains * (wide ? 16 : 8) * pool.num_threads();
  return operations / seconds_since(start);
#elif defined(__aarch64__)
  const auto start = Clock::now();
  pool.run([](int) { multiply_add_128(); });
  return 2.0 * kRounds * kChains * 4 * pool.num_threads() / seconds_since(start);
#else
  return 0;  // Not measured.
#endif
}

double byte_dot_peak(ThreadPool& pool) {
  // A dot product of four bytes is a multiplication and an addition for each.
  const double dots = 2.0 * kRounds * kChains * pool.num_threads();
  const auto start = Clock::now();
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) return 0;
  if (__builtin_cpu_supports("avx512vnni")) {
    pool.run([](int) { byte_dots_512(); });
    return dots * 64 / seconds_since(start);
  }
  const bool vnni = has_avxvnni();
  pool.run([&](int) { vnni ? byte_dots_256() : byte_products_256(); });
  return dots * 32 / seconds_since(start);
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return 0;  // Not measured.
  pool.run([](int) { byte_dots_128(); });
  return dots * 16 / seconds_since(start);
#else
  return 0;  // Not measured.
#endif
}

}  // namespace trtmc
