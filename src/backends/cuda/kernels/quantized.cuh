// Products of quantised weights on the tensor core. A weight is a scale times a whole number of at
// most 8 bits (q8: code - 128; q4: grid + shift), which bf16 holds exactly. So the tensor core
// multiplies whole numbers by terms of activations, and each row's scale is applied to the sum of a
// block, two steps, in float32:
//
//   sum of a segment = sum over its blocks, in rising order, of fma(scale, sum of the block, ..)
//
// of each term by itself; at the end of the segment the terms' sums are added as terms.h says.
// Segments are added as those of bf16.
//
// Where the codes of a lane lie in a block: a lane feeds the tensor core four words a step (word_of
// in weights.cu), each a pair of columns of one row.
//   q8  a word of codes for two words of the same columns, rows 2 g and 2 g + 1: the first row's
//       pair in bytes 0 and 2, the second's in 1 and 3
//   q4  a byte a word: the first column in the low half
#pragma once

#include <cuda_fp16.h>

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/product.h"
#include "tensor/block_formats.h"

namespace trtmc::cuda {

static_assert(kBlockColumns == kBlockSteps * kStepColumns && kBlockRows == kPanelRows);
static_assert(kBlockSteps == kExactSteps);

// ---- Where codes lie

// Of a row and a column, in bytes.
template <WeightFormat kFormat>
__device__ __forceinline__ int64_t block_of(int row, int column, int steps) {
  constexpr int kPieceColumns = kPieceSteps * kStepColumns;
  return quantized_piece(row / kPanelRows, column / kPieceColumns, steps) * piece_bytes(kFormat) +
         column % kPieceColumns / kBlockColumns * block_bytes(kFormat);
}
// Of a row of the panel and a pair (0 to 15) of a block's columns: q8, the first of two codes, two
// bytes from each other; q4, the byte of both.
template <WeightFormat kFormat>
__device__ __forceinline__ int pair_byte(int row, int pair) {
  constexpr int kPairs = kStepColumns / 2;
  const int step = pair / kPairs, half = pair % kPairs / 4;
  const int lane = row / 2 * 4 + pair % 4;
  const int in_lane = kFormat == WeightFormat::kQ8 ? (step * 2 + half) * 4 + row % 2
                                                   : step * 4 + half * 2 + row % 2;
  return lane * lane_bytes(kFormat) + in_lane;
}
template <WeightFormat kFormat>
__device__ __forceinline__ int scale_byte(int row) {
  return kStepLanes * lane_bytes(kFormat) + row * 2;
}

// ---- Decoding

__device__ __forceinline__ uint32_t added_pairs(uint32_t a, uint32_t b) {
  const __nv_bfloat162 sum = __hadd2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                                     *reinterpret_cast<const __nv_bfloat162*>(&b));
  return *reinterpret_cast<const uint32_t*>(&sum);
}
// (a & mask) | bits, and (a & mask) ^ bits: one instruction, if the compiler has no better idea.
__device__ __forceinline__ uint32_t masked_or(uint32_t a, uint32_t mask, uint32_t bits) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
}
__device__ __forceinline__ uint32_t masked_xor(uint32_t a, uint32_t mask, uint32_t bits) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
}
__device__ __forceinline__ float2 floats_of(uint32_t halves) {
  return __half22float2(*reinterpret_cast<const __half2*>(&halves));
}

// Four points of the grid in a word.
__device__ __forceinline__ constexpr uint32_t grid_word(int first) {
  uint32_t word = 0;
  for (int i = 3; i >= 0; --i) word = word << 8 | static_cast<uint8_t>(kQ4Grid[first + i]);
  return word;
}
__device__ __forceinline__ float grid_point(int code) {
  constexpr uint32_t kWords[4] = {grid_word(0), grid_word(4), grid_word(8), grid_word(12)};
  const uint32_t low = code & 4 ? kWords[1] : kWords[0];
  const uint32_t high = code & 4 ? kWords[3] : kWords[2];
  return static_cast<float>(static_cast<int8_t>((code & 8 ? high : low) >> code % 4 * 8));
}

// Turns what a lane has of a block into what it feeds the tensor core.
template <WeightFormat kFormat>
struct Decoder;

template <>
struct Decoder<WeightFormat::kQ8> {
  using Codes = uint4;
  static constexpr int kTableBytes = 0;

  __device__ __forceinline__ explicit Decoder(int) {}
  __device__ __forceinline__ void fill(int, int) const {}

  // `scales`: bits of those of the lane's rows, 2 g and 2 g + 1.
  __device__ __forceinline__ float2 decode(const Codes& codes, uint32_t scales,
                                           uint4 (&a)[kBlockSteps]) const {
    a[0] = make_uint4(pair(codes.x), pair(codes.x >> 8), pair(codes.y), pair(codes.y >> 8));
    a[1] = make_uint4(pair(codes.z), pair(codes.z >> 8), pair(codes.w), pair(codes.w >> 8));
    return floats_of(scales);
  }

 private:
  // Of bytes 0 and 2: 128 + the lower seven bits, less 128 if the eighth is set and 256 if not.
  static __device__ __forceinline__ uint32_t pair(uint32_t codes) {
    return added_pairs(masked_or(codes, 0x007f007fU, 0x43004300U),
                       masked_xor(codes, 0x00800080U, 0xc380c380U));
  }
};

// Nothing to decode.
template <>
struct Decoder<WeightFormat::kBf16> {
  static constexpr int kTableBytes = 0;
  __device__ __forceinline__ explicit Decoder(int) {}
  __device__ __forceinline__ void fill(int, int) const {}
};

// Looks up two codes at once, which takes a table of 256 words; each lane has one of its own, in a
// bank of its own.
template <>
struct Decoder<WeightFormat::kQ4> {
  using Codes = uint2;
  static constexpr int kTableBytes = 256 * kStepLanes * 4;

  __device__ __forceinline__ explicit Decoder(int lane) : lane_offset_(lane * 4) {}

  // By all threads of a block, before anybody decodes.
  __device__ __forceinline__ void fill(int thread, int threads) const {
    constexpr int kEntryParts = kStepLanes / 4;  // 16 bytes each.
    constexpr int kEntries = kTableBytes / 16 / kEntryParts;
    auto* table = reinterpret_cast<uint4*>(bytes());
    for (int codes = thread; codes < kEntries; codes += threads) {
      const __nv_bfloat162 pair =
          __floats2bfloat162_rn(grid_point(codes % 16), grid_point(codes / 16));
      const uint32_t word = *reinterpret_cast<const uint32_t*>(&pair);
      // Each thread begins elsewhere, so that they do not meet in a bank.
#pragma unroll
      for (int i = 0; i < kEntryParts; ++i) {
        table[codes * kEntryParts + (i + thread) % kEntryParts] =
            make_uint4(word, word, word, word);
      }
    }
  }

  __device__ __forceinline__ float2 decode(const Codes& codes, uint32_t scales,
                                           uint4 (&a)[kBlockSteps]) const {
    // 2 (128 + s) - 272 = 2 (s - 8).
    const uint32_t biased = (scales & 0x000f000fU) | 0x43004300U;
    const __nv_bfloat162 shifts =
        __hfma2(*reinterpret_cast<const __nv_bfloat162*>(&biased), __float2bfloat162_rn(2.0F),
                __float2bfloat162_rn(-272.0F));
    const uint32_t both = *reinterpret_cast<const uint32_t*>(&shifts);
    const uint32_t first = __byte_perm(both, both, 0x1010),
                   second = __byte_perm(both, both, 0x3232);
    a[0] = step(codes.x, first, second);
    a[1] = step(codes.y, first, second);
    return floats_of(scales & 0xfff0fff0U);
  }

 private:
  static __device__ __forceinline__ std::byte* bytes() {
    __shared__ __align__(16) std::byte table[kTableBytes];
    return table;
  }
  // kShift: how far left of bit 7 the byte begins; negative, right.
  template <int kShift>
  __device__ __forceinline__ uint32_t look_up(uint32_t codes) const {
    const uint32_t moved = kShift >= 0 ? codes << (kShift & 31) : codes >> (-kShift & 31);
    return *reinterpret_cast<const uint32_t*>(bytes() + ((moved & 0x7f80U) | lane_offset_));
  }
  __device__ __forceinline__ uint4 step(uint32_t codes, uint32_t first, uint32_t second) const {
    return make_uint4(
        added_pairs(look_up<7>(codes), first), added_pairs(look_up<-1>(codes), second),
        added_pairs(look_up<-9>(codes), first), added_pairs(look_up<-17>(codes), second));
  }

  uint32_t lane_offset_;
};

// A lane's part of a block, decoded. Returns its rows' scales.
template <WeightFormat kFormat>
__device__ __forceinline__ float2 decode_block(const Decoder<kFormat>& decoder, const void* block,
                                               int lane, uint4 (&a)[kBlockSteps]) {
  using Codes = typename Decoder<kFormat>::Codes;
  const auto* codes = static_cast<const Codes*>(block);
  const auto* scales = reinterpret_cast<const uint32_t*>(codes + kStepLanes);
  return decoder.decode(codes[lane], scales[lane / 4], a);
}

// ---- Sums

__device__ __forceinline__ void add_scaled(float* sums, const float (&block)[4], float2 scales) {
  sums[0] = __fmaf_rn(scales.x, block[0], sums[0]);
  sums[1] = __fmaf_rn(scales.x, block[1], sums[1]);
  sums[2] = __fmaf_rn(scales.y, block[2], sums[2]);
  sums[3] = __fmaf_rn(scales.y, block[3], sums[3]);
}

__device__ __forceinline__ float added_terms(float first, float second, float third) {
  return __fadd_rn(first, __fadd_rn(second, third));
}

// Of one tile over a segment.
template <int kTerms>
struct ScaledSums {
  float of[kTerms][4] = {};

  // A block's term, whose right sides are `right`.
  __device__ __forceinline__ void add(int term, const uint4 (&a)[kBlockSteps],
                                      const uint2 (&right)[kBlockSteps], float2 scales) {
    float block[4];
    multiply(block, a[0], right[0]);
    multiply_more(block, a[1], right[1]);
    add_scaled(of[term], block, scales);
  }
  // The segment's sum.
  __device__ __forceinline__ float total(int i) const {
    if constexpr (kTerms == 1) {
      return of[0][i];
    } else {
      return added_terms(of[0][i], of[1][i], of[2][i]);
    }
  }
};

}  // namespace trtmc::cuda
