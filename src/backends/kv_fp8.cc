#include "backends/kv_fp8.h"

#include <algorithm>

namespace trtmc {

float head_to_fp8(std::span<const float> x, std::span<uint8_t> codes) {
  uint32_t most = 0;
  for (const float value : x) most = std::max(most, std::bit_cast<uint32_t>(value) & ~kFloatSign);
  const uint32_t scale = fp8_scale_bits(most);
  const uint32_t inverse = fp8_inverse_bits(scale);
  if (inverse == 0) {
    std::ranges::fill(codes, uint8_t{0});
  } else {
    for (size_t i = 0; i < x.size(); ++i) {
      codes[i] = fp8_code(std::bit_cast<uint32_t>(x[i] * std::bit_cast<float>(inverse)));
    }
  }
  return std::bit_cast<float>(scale);
}

}  // namespace trtmc
