// Element types of tensors, in files and in memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trtmc {

// The numbers are part of the bundle format.
enum class DType : uint32_t { kF32 = 0, kF16 = 1, kBF16 = 2, kQ8 = 3, kQ4 = 4, kQ6 = 5 };

// Whether elements come in blocks that share a scale: tensor/block_formats.h.
constexpr bool is_quantized(DType dtype) { return dtype >= DType::kQ8; }
size_t element_bytes(DType dtype);                        // Not of a quantised type.
std::string_view dtype_name(DType dtype);                 // "f32", "f16", "bf16", "q8", "q4", "q6"
std::optional<DType> parse_dtype(std::string_view name);  // Of the names that aren't quantised.

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
uint16_t float_to_bf16(float value);  // To nearest, ties to even; a NaN stays a NaN.
float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);  // To nearest, ties to even; overflow gives infinity.

}  // namespace trtmc
