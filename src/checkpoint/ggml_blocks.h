// The blocks of GGUF's element types, one decoder each: float32 arithmetic in the order of PyPI's
// `gguf` (quants.py), so that every bit agrees. Private to this folder.
//
// A block begins or ends with its scales as f16. In those of 32 elements the low halves of the
// bytes are the first 16 elements and the high halves the other 16.
#pragma once

#include <cstddef>

namespace trtmc {

void decode_f32(const std::byte* block, float* out);
void decode_f16(const std::byte* block, float* out);
void decode_bf16(const std::byte* block, float* out);
void decode_q4_0(const std::byte* block, float* out);  // d, 32 x 4 bits: d (q - 8)
void decode_q4_1(const std::byte* block, float* out);  // d, m, 32 x 4 bits: d q + m
void decode_q5_0(const std::byte* block, float* out);  // d, 32 high bits, 32 x 4: d (q - 16)
void decode_q5_1(const std::byte* block, float* out);  // d, m, 32 high bits, 32 x 4: d q + m
void decode_q8_0(const std::byte* block, float* out);  // d, 32 x int8: d q
// d, dmin, 8 pairs of 6-bit scale and minimum in 12 bytes, 256 quants: (d s) q - (dmin m)
void decode_q4_k(const std::byte* block, float* out);
void decode_q5_k(const std::byte* block, float* out);  // With 256 high bits before the quants.
// 256 x 4 bits, 256 x 2 high bits, 16 scales of int8, d: (d s) (q - 32)
void decode_q6_k(const std::byte* block, float* out);

}  // namespace trtmc
