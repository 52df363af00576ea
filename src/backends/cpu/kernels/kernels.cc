// The kernels of trtmc's CPU backend: the one source that is compiled for each instruction set.
// Includes nothing but intrinsics and plain structs, and defines nothing but one function with a
// strong symbol: whatever the linker could share, it might give to an older CPU
// (tools/check_weak_symbols.sh).

#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/kernels/quantized.h"
#include "backends/cpu/kernels/tiling.h"

#if defined(TRTMC_ISA_avx512) || defined(TRTMC_ISA_avx512vnni)
#include "backends/cpu/kernels/simd_avx512.h"
#elif defined(TRTMC_ISA_avx2) || defined(TRTMC_ISA_avxvnni)
#include "backends/cpu/kernels/simd_avx2.h"
#elif defined(TRTMC_ISA_neon) || defined(TRTMC_ISA_neon_dotprod)
#include "backends/cpu/kernels/simd_neon.h"
#else
#include "backends/cpu/kernels/simd_generic.h"
#endif

#define TRTMC_STRING_OF(x) #x
#define TRTMC_STRING(x) TRTMC_STRING_OF(x)

namespace trtmc::cpu::TRTMC_ISA {
namespace {

// Vectors that make up the 16 rows of a panel.
constexpr int kPanelVecs = kPanelRows / kLanes;

// ---- Products -----------------------------------------------------------------------------------

struct F32Weights {
  using Element = float;
  static constexpr int kGroup = 1;
  static Vec load_rows(const float* group, int /*column*/, int vec) {
    return load(group + vec * kLanes);
  }
};

struct F16Weights {
  using Element = uint16_t;
  static constexpr int kGroup = 1;
  static Vec load_rows(const uint16_t* group, int /*column*/, int vec) {
    return load_f16(group + vec * kLanes);
  }
};

struct Bf16Weights {
  using Element = uint16_t;
  static constexpr int kGroup = 2;
  static Vec load_rows(const uint16_t* group, int column, int vec) {
    const uint16_t* rows = group + vec * kLanes * 2;
    return column == 0 ? load_pair_low(rows) : load_pair_high(rows);
  }
};

// How far ahead of a single token's product its weights are fetched, in bytes: beyond the page that
// the hardware's own prefetcher stops at.
constexpr int64_t kPrefetchBytes = 1024;

// The tokens of a tile are stored [k][width].
template <typename Weights>
struct FloatKernel {
  using Element = typename Weights::Element;
  static constexpr int kTileTokens = TRTMC_ISA::kTileTokens;
  // The tokens' part stays in the second-level cache beside the panels'. Sums wait in y in between,
  // which does not change them.
  static constexpr int64_t kColumnsAtATime = 1024;
  static constexpr int kPanelParts = 1;

  // Panels side by side for a tile of `tokens`: enough independent sums to hide the latency of
  // multiply-add, no more than there are registers.
  static constexpr int parts_for(int tokens) {
    const int most = smaller(4, kAccumulators / (tokens * kPanelVecs));
    return most >= 4 ? 4 : most >= 2 ? 2 : 1;
  }

  template <int Panels, int Width>
  static inline void multiply(const TileArgs& tile, int first_panel) {
    constexpr int kVecs = Panels * kPanelVecs;
    constexpr int kGroup = Weights::kGroup;
    const MatmulArgs& args = tile.args;
    const int64_t panel_elements = args.panel_bytes / static_cast<int64_t>(sizeof(Element));
    const Element* panels = static_cast<const Element*>(args.panels) +
                            first_panel * panel_elements + tile.first * kPanelRows;
    const float* x =
        static_cast<const float*>(args.x) + tile.first_token * args.x_width + tile.first * Width;
    float* y = args.y + tile.first_token * args.y_stride + first_panel * kPanelRows;
    Vec sums[Width][kVecs];
    TRTMC_UNROLL
    for (int t = 0; t < Width; ++t) {
      const float* row = y + smaller(t, tile.num_tokens - 1) * args.y_stride;
      TRTMC_UNROLL
      for (int v = 0; v < kVecs; ++v) sums[t][v] = tile.adds ? load(row + v * kLanes) : zero();
    }
    for (int64_t k = 0; k < tile.columns; k += kGroup) {
      if constexpr (Width == 1) {
        TRTMC_UNROLL
        for (int p = 0; p < Panels; ++p) {
          __builtin_prefetch(
              reinterpret_cast<const char*>(panels + p * panel_elements + k * kPanelRows) +
              kPrefetchBytes);
        }
      }
      TRTMC_UNROLL
      for (int column = 0; column < kGroup; ++column) {
        Vec weights[kVecs];
        TRTMC_UNROLL
        for (int v = 0; v < kVecs; ++v) {
          weights[v] = Weights::load_rows(panels + v / kPanelVecs * panel_elements + k * kPanelRows,
                                          column, v % kPanelVecs);
        }
        TRTMC_UNROLL
        for (int t = 0; t < Width; ++t) {
          const Vec token = set1(x[(k + column) * Width + t]);
          TRTMC_UNROLL
          for (int v = 0; v < kVecs; ++v) sums[t][v] = fma(weights[v], token, sums[t][v]);
        }
      }
    }
    TRTMC_UNROLL
    for (int t = 0; t < Width; ++t) {
      if (t >= tile.num_tokens) break;
      TRTMC_UNROLL
      for (int v = 0; v < kVecs; ++v) store(y + t * args.y_stride + v * kLanes, sums[t][v]);
    }
  }
};

void pack_tokens(const float* x, int num_tokens, int64_t width, float* out) {
  const int tile = tile_width(kTileTokens, num_tokens);
  for (int64_t column = 0; column < width; ++column) {
    for (int t = 0; t < num_tokens; ++t) out[column * tile + t] = x[t * width + column];
    for (int t = num_tokens; t < tile; ++t) out[column * tile + t] = 0;
  }
}

// ---- Element by element -------------------------------------------------------------------------

// e^x to about one unit in the last place: 2^n e^r with r in [-ln 2 / 2, ln 2 / 2], e^r by its
// Taylor polynomial of degree 7 (the rest is below 2^-27). 2^n is applied in two halves so that
// results may be subnormal or infinite.
inline Vec exp(Vec x) {
  x = min(set1(89.0F), max(set1(-105.0F), x));
  const Vec n = round_nearest(mul(x, set1(0x1.715476p+0F)));
  Vec r = fma(n, set1(-0x1.62e4p-1F), x);  // ln 2, its first 16 bits,
  r = fma(n, set1(-0x1.7f7d1cp-20F), r);   // and the rest.
  Vec p = set1(1.0F / 5040);
  p = fma(p, r, set1(1.0F / 720));
  p = fma(p, r, set1(1.0F / 120));
  p = fma(p, r, set1(1.0F / 24));
  p = fma(p, r, set1(1.0F / 6));
  p = fma(p, r, set1(0.5F));
  p = fma(p, r, set1(1.0F));
  p = fma(p, r, set1(1.0F));
  const Vec half = floor_half(n);
  return mul(mul(p, power_of_two(half)), power_of_two(sub(n, half)));
}

void exp_array(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += kLanes) store(out + i, exp(load(x + i)));
}

void add_arrays(const float* a, const float* b, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += kLanes) store(out + i, add(load(a + i), load(b + i)));
}

void divide(const float* x, float divisor, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += kLanes) store(out + i, div(load(x + i), set1(divisor)));
}

void swiglu(const float* gate, const float* up, int64_t n, float* out) {
  const Vec one = set1(1.0F);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec x = load(gate + i);
    const Vec silu = div(x, add(one, exp(sub(zero(), x))));
    store(out + i, mul(silu, load(up + i)));
  }
}

void rms_norm(const float* x, const float* weight, int64_t width, int64_t padded, float eps,
              float* out) {
  constexpr int kSums = 16 / kLanes;
  Vec sums[kSums] = {};
  for (int64_t i = 0; i < padded; i += 16) {
    TRTMC_UNROLL
    for (int s = 0; s < kSums; ++s) {
      const Vec v = load(x + i + s * kLanes);
      sums[s] = fma(v, v, sums[s]);
    }
  }
  float total = 0;
  for (int s = 0; s < kSums; ++s) total += reduce_add(sums[s]);
  const float mean = total / static_cast<float>(width);
  const Vec inverse = set1(1.0F / __builtin_sqrtf(mean + eps));
  for (int64_t i = 0; i < padded; i += kLanes) {
    store(out + i, mul(load(weight + i), mul(load(x + i), inverse)));
  }
}

// ---- Attention ----------------------------------------------------------------------------------

struct F32Cache {
  using Element = float;
  static constexpr bool kHasScales = false;
  static Vec load_vec(const float* p) { return load(p); }
};
struct Bf16Cache {
  using Element = uint16_t;
  static constexpr bool kHasScales = false;
  static Vec load_vec(const uint16_t* p) { return load_bf16(p); }
};
struct Q8Cache {
  using Element = int8_t;
  static constexpr bool kHasScales = true;
  static Vec load_vec(const int8_t* p) { return load_i8(p); }
};
struct Fp8Cache {
  using Element = uint8_t;
  static constexpr bool kHasScales = true;
  static Vec load_vec(const uint8_t* p) { return load_fp8(p); }
};

// Those of a block's bytes, behind them: one a position.
inline const float* scales_of(const void* bytes, int head_dim) {
  return reinterpret_cast<const float*>(static_cast<const int8_t*>(bytes) +
                                        int64_t{head_dim} * kKvBlockSize);
}

constexpr int kScoreVecs = kKvBlockSize / kLanes;

// The weights e^(score - largest) of `Heads` heads, the new largest and sums, and in `scales` what
// the values mixed so far are multiplied with.
template <typename Cache, int Heads>
inline void weigh(const AttentionArgs& args, int head, float (*weights)[kKvBlockSize],
                  float* scales) {
  const auto* keys = static_cast<const typename Cache::Element*>(args.keys);
  const float* q = args.q + head * args.head_dim;
  Vec scores[Heads][kScoreVecs];
  TRTMC_UNROLL
  for (int h = 0; h < Heads; ++h) {
    TRTMC_UNROLL
    for (int v = 0; v < kScoreVecs; ++v) scores[h][v] = zero();
  }
  for (int d = 0; d < args.head_dim; ++d) {
    TRTMC_UNROLL
    for (int v = 0; v < kScoreVecs; ++v) {
      const Vec key = Cache::load_vec(keys + d * kKvBlockSize + v * kLanes);
      TRTMC_UNROLL
      for (int h = 0; h < Heads; ++h) {
        scores[h][v] = fma(set1(q[h * args.head_dim + d]), key, scores[h][v]);
      }
    }
  }
  const Vec nothing = set1(-__builtin_inff());
  TRTMC_UNROLL
  for (int h = 0; h < Heads; ++h) {
    Vec largest = nothing;
    TRTMC_UNROLL
    for (int v = 0; v < kScoreVecs; ++v) {
      if constexpr (Cache::kHasScales) {
        const float* key_scales = scales_of(args.keys, args.head_dim) + v * kLanes;
        scores[h][v] = mul(scores[h][v], load(key_scales));
      }
      const Vec scaled = mul(scores[h][v], set1(args.scale));
      scores[h][v] = select_lanes(scaled, nothing, v * kLanes, args.first, args.last);
      largest = max(largest, scores[h][v]);
    }
    const float before = args.largest[head + h];
    const float in_block = reduce_max(largest);
    const float now = in_block > before ? in_block : before;
    Vec total = zero();
    TRTMC_UNROLL
    for (int v = 0; v < kScoreVecs; ++v) {
      const Vec weight = select_lanes(exp(sub(scores[h][v], set1(now))), zero(), v * kLanes,
                                      args.first, args.last);
      total = add(total, weight);
      store(weights[h] + v * kLanes, weight);
    }
    float scale[kLanes];
    store(scale, exp(set1(before - now)));
    scales[h] = scale[0];
    args.largest[head + h] = now;
    args.sum[head + h] = args.sum[head + h] * scale[0] + reduce_add(total);
  }
}

// mixed = mixed * scale + weights * values, for `Vecs` vectors of each head from dimension `d`.
template <typename Cache, int Heads, int Vecs>
inline void mix(const AttentionArgs& args, int head, int d, const float (*weights)[kKvBlockSize],
                const float* scales) {
  const auto* values = static_cast<const typename Cache::Element*>(args.values);
  float* mixed = args.mixed + head * args.head_dim + d;
  Vec sums[Heads][Vecs];
  TRTMC_UNROLL
  for (int h = 0; h < Heads; ++h) {
    TRTMC_UNROLL
    for (int v = 0; v < Vecs; ++v) {
      sums[h][v] = mul(load(mixed + h * args.head_dim + v * kLanes), set1(scales[h]));
    }
  }
  for (int position = args.first; position < args.last; ++position) {
    TRTMC_UNROLL
    for (int v = 0; v < Vecs; ++v) {
      const Vec value = Cache::load_vec(values + position * args.head_dim + d + v * kLanes);
      TRTMC_UNROLL
      for (int h = 0; h < Heads; ++h) {
        sums[h][v] = fma(set1(weights[h][position]), value, sums[h][v]);
      }
    }
  }
  TRTMC_UNROLL
  for (int h = 0; h < Heads; ++h) {
    TRTMC_UNROLL
    for (int v = 0; v < Vecs; ++v) store(mixed + h * args.head_dim + v * kLanes, sums[h][v]);
  }
}

template <typename Cache, int Heads>
inline void attend_heads(const AttentionArgs& args, int head) {
  constexpr int kVecs = 4;
  float weights[Heads][kKvBlockSize];
  float scales[Heads];
  weigh<Cache, Heads>(args, head, weights, scales);
  if constexpr (Cache::kHasScales) {
    const float* value_scales = scales_of(args.values, args.head_dim);
    TRTMC_UNROLL
    for (int h = 0; h < Heads; ++h) {
      for (int i = args.first; i < args.last; ++i) weights[h][i] *= value_scales[i];
    }
  }
  int d = 0;
  for (; d + kVecs * kLanes <= args.head_dim; d += kVecs * kLanes) {
    mix<Cache, Heads, kVecs>(args, head, d, weights, scales);
  }
  for (; d < args.head_dim; d += kLanes) mix<Cache, Heads, 1>(args, head, d, weights, scales);
}

template <typename Cache>
void attend(const AttentionArgs& args) {
  int head = 0;
  for (; head + kAttentionHeads <= args.num_heads; head += kAttentionHeads) {
    attend_heads<Cache, kAttentionHeads>(args, head);
  }
  if constexpr (kAttentionHeads > 3) {
    if (args.num_heads - head == 3) return attend_heads<Cache, 3>(args, head);
  }
  if constexpr (kAttentionHeads > 2) {
    if (args.num_heads - head == 2) return attend_heads<Cache, 2>(args, head);
  }
  if (args.num_heads - head == 1) attend_heads<Cache, 1>(args, head);
}

constexpr KernelTable kTable = {
    .name = TRTMC_STRING(TRTMC_ISA),
    .tile_tokens = kTileTokens,
    .pack_tokens = pack_tokens,
    .matmul_f32 = matmul<FloatKernel<F32Weights>>,
    .matmul_f16 = matmul<FloatKernel<F16Weights>>,
    .matmul_bf16 = matmul<FloatKernel<Bf16Weights>>,
    .quantize_tokens = quantize_tokens,
    .matmul_q8 = matmul_q8,
    .matmul_q6 = matmul_q6,
    .matmul_q4 = matmul_q4,
    .attend_f32 = attend<F32Cache>,
    .attend_bf16 = attend<Bf16Cache>,
    .attend_q8 = attend<Q8Cache>,
    .attend_fp8 = attend<Fp8Cache>,
    .rms_norm = rms_norm,
    .swiglu = swiglu,
    .add = add_arrays,
    .exp = exp_array,
    .divide = divide,
};

}  // namespace

const KernelTable& kernel_table();
const KernelTable& kernel_table() { return kTable; }

}  // namespace trtmc::cpu::TRTMC_ISA
