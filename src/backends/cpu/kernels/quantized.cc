// Products of quantised weights (tensor/block_formats.h) with activations that are made bytes, 32
// columns at a time: compiled once per instruction set, as kernels.cc is, and like it includes
// nothing but intrinsics and plain structs.
//
// A block's dot product is a sum of integers, exact in any order. From there on every step is one
// IEEE operation, written out and compiled without contraction, so that all instruction sets give
// the same bits:
//
//   token t, block b:  s[t] = max |x| / 127, q[t][k] = x[k] * (127 / max |x|) to nearest even
//   rest               x[k] - s[t] * q[t][k], where it is asked for
//   row r:             d = sum over k of code[r][k] * q[t][k], and for q6 and q4
//                          + shift[r] * sum of q[t]
//                      y = fma(scale[r], d * s[t], y), block after block
//
// |d| stays below 2^21, so that it is exact as a float too.

#include "backends/cpu/kernels/quantized.h"

#include "backends/cpu/kernels/tiling.h"
#include "tensor/block_formats.h"

#if defined(TRTMC_ISA_avx512vnni)
#include "backends/cpu/kernels/dot_avx512vnni.h"
#elif defined(TRTMC_ISA_avxvnni)
#include "backends/cpu/kernels/dot_avxvnni.h"
#elif defined(TRTMC_ISA_avx2) || defined(TRTMC_ISA_avx512)
#include "backends/cpu/kernels/dot_avx2.h"
#elif defined(TRTMC_ISA_neon) || defined(TRTMC_ISA_neon_dotprod)
#include "backends/cpu/kernels/dot_neon.h"
#else
#include "backends/cpu/kernels/dot_generic.h"
#endif

namespace trtmc::cpu::TRTMC_ISA {
namespace {

// One block of a tile of tokens.
template <int Width>
struct TokenBlock {
  int32_t quads[kQuadsPerBlock][Width];  // Four bytes of a token, side by side.
  int32_t sums[Width];                   // Of its 32 bytes.
  float float_sums[Width];
  float scales[Width];
};
static_assert(sizeof(TokenBlock<1>) == kQuantizedBlockWords * 4);

// ---- Activations

// The bytes of 32 columns of one token.
struct QuantizedBlock {
  int8_t codes[kBlockColumns];
  int32_t sum;
  float scale;

  // Of x: [count], its floats.
  void subtract_from(const float* x, int64_t count, float* rest) const {
    for (int64_t i = 0; i < count; ++i) rest[i] = x[i] - scale * static_cast<float>(codes[i]);
  }
};

// x: [32]. What is not finite makes the scale so, and with it every product.
inline void quantize_block(const float* x, QuantizedBlock& out) {
  int32_t bits[kBlockColumns];
  __builtin_memcpy(bits, x, sizeof(bits));
  // Magnitudes of floats have the order of their bits, and no number is the largest of all.
  int32_t most_bits = 0;
  for (const int32_t b : bits) {
    const int32_t magnitude = b & 0x7FFFFFFF;
    most_bits = magnitude > most_bits ? magnitude : most_bits;
  }
  float most = 0;
  __builtin_memcpy(&most, &most_bits, sizeof(most));
  // So small that 127 / most could be infinite: it counts for nothing.
  const bool nothing = most < 0x1p-100F;
  const float inverse = nothing ? 0.0F : 127.0F / most;
  out.scale = nothing ? 0.0F : most / 127.0F;
  out.sum = 0;
  // An integer that is added to 1.5 * 2^23 lies in the lowest bits, rounded to nearest even.
  for (int i = 0; i < kBlockColumns; ++i) {
    const float shifted = x[i] * inverse + 0x1.8p23F;
    int32_t code = 0;
    __builtin_memcpy(&code, &shifted, sizeof(code));
    out.codes[i] = static_cast<int8_t>(code);
    out.sum += out.codes[i];
  }
}

// ---- Weights: a block of a group, kLanes of its rows
//
// codes(): those of one of kQuadsTogether quads from `first` on, less what kTooMuch says. Then
// value = scale * (code - kTooMuch + shift).

struct Q8Weights {
  using Group = Q8Group;
  static constexpr int kQuadsTogether = 1;
  static constexpr int kTooMuch = kByteCodesZero;
  static constexpr bool kShifted = false;
  template <int Block>
  static Codes codes(const Group& group, int first, int /*which*/, int row) {
    return load_codes(group.codes[Block * kQuadsPerBlock + first][row]);
  }
  static Vec scales(const uint16_t* bits) { return load_f16(bits); }
  static Vec shifts(const uint16_t* /*bits*/) { return zero(); }
};

// Scales whose lowest bits are a shift; the code `Zero` is what it shifts.
template <int Zero>
struct ShiftedWeights {
  static constexpr bool kShifted = true;
  static Vec scales(const uint16_t* bits) {
    uint16_t halves[kLanes];
    for (int i = 0; i < kLanes; ++i) halves[i] = shifted_scale_bits(bits[i]);
    return load_f16(halves);
  }
  static Vec shifts(const uint16_t* bits) {
    float values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = static_cast<float>(scale_shift(bits[i]) - Zero);
    return load(values);
  }
};

// Codes as they lie: of six bits, they are the same bytes with a sign and without, and what 0 to 63
// have too much costs nothing in the shift.
struct Q6Weights : ShiftedWeights<kQ6Zero> {
  using Group = Q6Group;
  static constexpr int kQuadsTogether = kQ6Quads;
  static constexpr int kTooMuch = 0;
  template <int Block>
  static SmallCodes codes(const Group& group, int first, int which, int row) {
    const auto& lines = group.codes[Block][first / kQ6Quads];
    if (which < kQ6Lines) return load_low_six(lines[which][row]);
    return load_high_twos(lines[0][row], lines[1][row], lines[2][row]);
  }
};

struct Q4Weights : ShiftedWeights<0> {
  using Group = Q4Group;
  static constexpr int kQuadsTogether = 1;
  static constexpr int kTooMuch = kByteCodesZero;
  template <int Block>
  static Codes codes(const Group& group, int first, int /*which*/, int row) {
    const uint8_t* bytes = group.codes[first][row];
    return Block == 0 ? load_low_codes(bytes) : load_high_codes(bytes);
  }
};

// ---- Products

// How far ahead weights are fetched while they come from memory, in bytes: beyond the page that
// the hardware's own prefetcher stops at.
constexpr int64_t kPrefetchBytes = 2048;
constexpr int64_t kLineBytes = 64;
// With more tokens than these, weights come from the cache but for the first tile.
constexpr int kTokensOfStreaming = 8;

// sums += the products of one block. groups: of each part, of which `rows` is the first row.
template <typename Weights, int Block, int Parts, int Width>
inline void add_block(const typename Weights::Group* const (&groups)[Parts],
                      const int (&rows)[Parts], const TokenBlock<Width>& x,
                      Vec (&sums)[Width][Parts]) {
  Ints dots[Width][Parts];
  TRTMC_UNROLL
  for (int t = 0; t < Width; ++t) {
    TRTMC_UNROLL
    for (int p = 0; p < Parts; ++p) dots[t][p] = set1_ints(-Weights::kTooMuch * x.sums[t]);
  }
  TRTMC_ROLLED  // Longer code is no faster, where reading it is what takes time.
      for (int first = 0; first < kQuadsPerBlock; first += Weights::kQuadsTogether) {
    TRTMC_UNROLL
    for (int which = 0; which < Weights::kQuadsTogether; ++which) {
      decltype(Weights::template codes<Block>(*groups[0], 0, 0, 0)) codes[Parts];
      TRTMC_UNROLL
      for (int p = 0; p < Parts; ++p) {
        codes[p] = Weights::template codes<Block>(*groups[p], first, which, rows[p]);
      }
      TRTMC_UNROLL
      for (int t = 0; t < Width; ++t) {
        const int32_t& quad = x.quads[first + which][t];
        TRTMC_UNROLL
        for (int p = 0; p < Parts; ++p) dots[t][p] = dot(codes[p], quad, dots[t][p]);
      }
    }
  }
  TRTMC_UNROLL
  for (int p = 0; p < Parts; ++p) {
    const uint16_t* bits = groups[p]->scales[Block] + rows[p];
    const Vec scale = Weights::scales(bits);
    const Vec shift = Weights::shifts(bits);
    TRTMC_UNROLL
    for (int t = 0; t < Width; ++t) {
      Vec sum = to_float(dots[t][p]);
      if constexpr (Weights::kShifted) sum = fused(shift, set1(x.float_sums[t]), sum);
      sums[t][p] = fused(scale, mul(sum, set1(x.scales[t])), sums[t][p]);
    }
  }
}

template <typename Weights>
struct QuantizedKernel {
  using Group = typename Weights::Group;
  static constexpr int kTileTokens = kDotTokens;
  static constexpr int kPanelParts = kPanelRows / kLanes;
  // A tile's tokens and eight panels of them lie in the second-level cache.
  static constexpr int64_t kColumnsAtATime = 2048;

  // As many as there are registers for, a power of two; at most four panels.
  static constexpr int parts_for(int tokens) {
    int parts = 1;
    while (parts * 2 * tokens <= kDotAccumulators && parts * 2 <= 4 * kPanelParts) parts *= 2;
    return parts;
  }

  template <int Parts, int Width>
  static void multiply(const TileArgs& tile, int first_part) {
    const MatmulArgs& args = tile.args;
    const Group* groups[Parts];
    int rows[Parts];
    TRTMC_UNROLL
    for (int p = 0; p < Parts; ++p) {
      const int64_t panel = (first_part + p) / kPanelParts;
      const auto* bytes = static_cast<const uint8_t*>(args.panels) + panel * args.panel_bytes;
      groups[p] = reinterpret_cast<const Group*>(bytes) + tile.first / kGroupColumns;
      rows[p] = (first_part + p) % kPanelParts * kLanes;
    }
    const auto* words = static_cast<const float*>(args.x) + tile.first_token * args.x_width;
    const auto* x = reinterpret_cast<const TokenBlock<Width>*>(words) + tile.first / kBlockColumns;
    float* y = args.y + tile.first_token * args.y_stride + int64_t{first_part} * kLanes;
    Vec sums[Width][Parts];
    TRTMC_UNROLL
    for (int t = 0; t < Width; ++t) {
      const float* row = y + smaller(t, tile.num_tokens - 1) * args.y_stride;
      TRTMC_UNROLL
      for (int p = 0; p < Parts; ++p)
        sums[t][p] = tile.adds ? load(row + int64_t{p} * kLanes) : zero();
    }
    for (int64_t column = 0; column < tile.columns; column += kGroupColumns, x += 2) {
      if constexpr (Width <= kTokensOfStreaming) prefetch(groups);
      add_block<Weights, 0>(groups, rows, x[0], sums);
      add_block<Weights, 1>(groups, rows, x[1], sums);
      TRTMC_UNROLL
      for (int p = 0; p < Parts; ++p) ++groups[p];
    }
    TRTMC_UNROLL
    for (int t = 0; t < Width; ++t) {
      if (t >= tile.num_tokens) break;
      TRTMC_UNROLL
      for (int p = 0; p < Parts; ++p)
        store(y + t * args.y_stride + int64_t{p} * kLanes, sums[t][p]);
    }
  }

 private:
  // Of each panel once: its first part does it.
  template <int Parts>
  static inline void prefetch(const Group* const (&groups)[Parts]) {
    TRTMC_UNROLL
    for (int p = 0; p < Parts; p += kPanelParts) {
      const auto* bytes = reinterpret_cast<const char*>(groups[p]) + kPrefetchBytes;
      TRTMC_UNROLL
      for (uint64_t line = 0; line < sizeof(Group); line += kLineBytes) {
        __builtin_prefetch(bytes + line);
      }
    }
  }
};

}  // namespace

void quantize_tokens(const float* x, int num_tokens, int64_t width, int64_t columns, void* out,
                     float* rest) {
  auto* words = static_cast<float*>(out);
  for (int first = 0; first < num_tokens; first += kDotTokens) {
    const int count = smaller(kDotTokens, num_tokens - first);
    const int tile = tile_width(kDotTokens, count);
    for (int64_t column = 0; column < columns; column += kBlockColumns) {
      float* block = words + column / kBlockColumns * kQuantizedBlockWords * tile;
      for (int64_t i = 0; count < tile && i < kQuantizedBlockWords * tile; ++i) block[i] = 0;
      for (int t = 0; t < count; ++t) {
        const float* row = x + (first + t) * width;
        float tail[kBlockColumns] = {};
        const bool whole = column + kBlockColumns <= width;
        for (int64_t i = column; !whole && i < width; ++i) tail[i - column] = row[i];
        QuantizedBlock bytes;
        quantize_block(whole ? row + column : tail, bytes);
        if (rest != nullptr) {
          const int64_t left = width - column;
          const int64_t there = left < kBlockColumns ? left : kBlockColumns;
          bytes.subtract_from(row + column, there, rest + (first + t) * width + column);
        }
        for (int64_t quad = 0; quad < kQuadsPerBlock; ++quad) {
          __builtin_memcpy(block + quad * tile + t, bytes.codes + quad * kQuadColumns, 4);
        }
        float* last = block + int64_t{kQuadsPerBlock} * tile + t;
        __builtin_memcpy(last, &bytes.sum, 4);
        last[tile] = static_cast<float>(bytes.sum);
        last[int64_t{2} * tile] = bytes.scale;
      }
    }
    words += quantized_width(columns) * kDotTokens;
  }
}

void matmul_q8(const MatmulArgs& args) { matmul<QuantizedKernel<Q8Weights>>(args); }
void matmul_q6(const MatmulArgs& args) { matmul<QuantizedKernel<Q6Weights>>(args); }
void matmul_q4(const MatmulArgs& args) { matmul<QuantizedKernel<Q4Weights>>(args); }

}  // namespace trtmc::cpu::TRTMC_ISA
