#include "checkpoint/ggml_blocks.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

namespace trtmc {
namespace {

static_assert(std::endian::native == std::endian::little, "the blocks are little-endian");

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

float load_f16(const std::byte* from) { return f16_to_float(load<uint16_t>(from)); }
uint32_t byte_at(const std::byte* bytes, int i) { return std::to_integer<uint32_t>(bytes[i]); }

// Quant `i` of 32 that lie as 4 bits each, the halves of 16 bytes.
uint32_t nibble(const std::byte* quants, int i) {
  return (byte_at(quants, i % 16) >> (i < 16 ? 0 : 4)) & 15;
}

// A scale or minimum of 6 bits and its offset: K blocks pack eight pairs into 12 bytes.
struct ScaleAndMinimum {
  float scale, minimum;
};

ScaleAndMinimum unpack_scale(const std::byte* packed, int group) {
  uint32_t scale, minimum;
  if (group < 4) {
    scale = byte_at(packed, group) & 63;
    minimum = byte_at(packed, group + 4) & 63;
  } else {
    const uint32_t low = byte_at(packed, group + 4);
    scale = (low & 15) | (byte_at(packed, group - 4) >> 6) << 4;
    minimum = (low >> 4) | (byte_at(packed, group) >> 6) << 4;
  }
  return {static_cast<float>(scale), static_cast<float>(minimum)};
}

// The part that Q4_K and Q5_K share: eight groups of 32 quants; two groups share 32 bytes, the
// first in their low halves. high_bit(group, i): what stands above the four bits.
template <typename HighBit>
void decode_k(const std::byte* block, const std::byte* quants, HighBit high_bit, float* out) {
  const float d = load_f16(block), d_minimum = load_f16(block + 2);
  for (int group = 0; group < 8; ++group) {
    const auto [scale, minimum] = unpack_scale(block + 4, group);
    const float group_scale = d * scale, group_minimum = d_minimum * minimum;
    for (int i = 0; i < 32; ++i) {
      const uint32_t low = (byte_at(quants, group / 2 * 32 + i) >> (group % 2 * 4)) & 15;
      const auto quant = static_cast<float>(low | high_bit(group, i) << 4);
      out[group * 32 + i] = group_scale * quant - group_minimum;
    }
  }
}

}  // namespace

void decode_f32(const std::byte* block, float* out) { *out = load<float>(block); }
void decode_f16(const std::byte* block, float* out) { *out = load_f16(block); }
void decode_bf16(const std::byte* block, float* out) {
  *out = bf16_to_float(load<uint16_t>(block));
}

void decode_q4_0(const std::byte* block, float* out) {
  const float d = load_f16(block);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(static_cast<int>(nibble(block + 2, i)) - 8);
  }
}

void decode_q4_1(const std::byte* block, float* out) {
  const float d = load_f16(block), minimum = load_f16(block + 2);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block + 4, i)) + minimum;
}

void decode_q5_0(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const auto high = load<uint32_t>(block + 2);
  for (int i = 0; i < 32; ++i) {
    const uint32_t quant = nibble(block + 6, i) | (high >> i & 1) << 4;
    out[i] = d * static_cast<float>(static_cast<int>(quant) - 16);
  }
}

void decode_q5_1(const std::byte* block, float* out) {
  const float d = load_f16(block), minimum = load_f16(block + 2);
  const auto high = load<uint32_t>(block + 4);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(nibble(block + 8, i) | (high >> i & 1) << 4) + minimum;
  }
}

void decode_q8_0(const std::byte* block, float* out) {
  const float d = load_f16(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(load<int8_t>(block + 2 + i)) * d;
}

void decode_q4_k(const std::byte* block, float* out) {
  decode_k(
      block, block + 16, [](int, int) { return 0U; }, out);
}

void decode_q5_k(const std::byte* block, float* out) {
  // Bit `group` of byte i.
  decode_k(
      block, block + 48, [&](int group, int i) { return byte_at(block + 16, i) >> group & 1; },
      out);
}

void decode_q6_k(const std::byte* block, float* out) {
  const std::byte *low = block, *high = block + 128, *scales = block + 192;
  const float d = load_f16(block + 208);
  for (int i = 0; i < 256; ++i) {
    // Halves of 128; in each, 64 bytes hold four runs of 32 quants: two in the low halves of the
    // bytes, two in the high ones. Their upper two bits lie in 32 bytes, a pair of bits a run.
    const int half = i / 128, run = i / 32 % 4, at = i % 32;
    const uint32_t lower = byte_at(low, half * 64 + run % 2 * 32 + at) >> (run / 2 * 4) & 15;
    const uint32_t upper = byte_at(high, half * 32 + at) >> (run * 2) & 3;
    const float scale = d * static_cast<float>(load<int8_t>(scales + i / 16));
    out[i] = scale * static_cast<float>(static_cast<int>(lower | upper << 4) - 32);
  }
}

}  // namespace trtmc
