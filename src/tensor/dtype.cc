#include "tensor/dtype.h"

#include <array>
#include <cmath>

#include "base/check.h"

namespace trtmc {
namespace {

struct DTypeInfo {
  std::string_view name;
  size_t bytes;
};

constexpr std::array<DTypeInfo, 6> kDTypes{
    {{"f32", 4}, {"f16", 2}, {"bf16", 2}, {"q8", 0}, {"q4", 0}, {"q6", 0}}};

const DTypeInfo& info(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  TRTMC_CHECK(index < kDTypes.size(), "not an element type");
  return kDTypes[index];
}

constexpr uint32_t kF32Infinity = 0x7f800000;

}  // namespace

size_t element_bytes(DType dtype) {
  TRTMC_CHECK(!is_quantized(dtype), "an element of a block has no bytes of its own");
  return info(dtype).bytes;
}

std::string_view dtype_name(DType dtype) { return info(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (kDTypes[i].name == name && !is_quantized(dtype)) return dtype;
  }
  return std::nullopt;
}

uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  // Rounding could carry a NaN's payload away; the quiet bit keeps it a NaN.
  if ((bits & ~(uint32_t{1} << 31)) > kF32Infinity) {
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  }
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float f16_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude < 0x0400) {  // Zero or subnormal: a whole number of 2^-24.
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  if (magnitude >= 0x7c00) {
    return std::bit_cast<float>(sign | kF32Infinity | (magnitude & 0x3ff) << 13);
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (uint32_t{127 - 15} << 23)));
}

uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t rounded = 0;
  if (magnitude > kF32Infinity) {
    rounded = 0x7e00 | (magnitude >> 13 & 0x3ff);
  } else if (magnitude >= std::bit_cast<uint32_t>(65536.0F)) {
    rounded = 0x7c00;
  } else if (magnitude < std::bit_cast<uint32_t>(0x1p-14F)) {
    // The last bit of 0.5 is 2^-24, as that of every subnormal: the sum rounds to it.
    rounded = std::bit_cast<uint32_t>(std::fabs(value) + 0.5F) - std::bit_cast<uint32_t>(0.5F);
  } else {
    const uint32_t carried = magnitude + 0xfff + (magnitude >> 13 & 1);
    rounded = (carried - (uint32_t{127 - 15} << 23)) >> 13;
  }
  return static_cast<uint16_t>(sign | rounded);
}

}  // namespace trtmc
