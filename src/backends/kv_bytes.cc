#include "backends/kv_bytes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trtmc {

float head_to_bytes(std::span<const float> x, std::span<int8_t> codes) {
  constexpr float kMostCode = 127;
  float most = 0;
  bool is_finite = true;
  for (const float value : x) {
    is_finite &= std::fabs(value) <= std::numeric_limits<float>::max();
    most = std::max(most, std::fabs(value));
  }
  // So small that the inverse could be infinite.
  if (!is_finite || most < 0x1p-100F) {
    std::ranges::fill(codes, int8_t{0});
    return is_finite ? 0 : std::numeric_limits<float>::quiet_NaN();
  }
  const float inverse = kMostCode / most;
  for (size_t i = 0; i < x.size(); ++i) {
    codes[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
  }
  return most / kMostCode;
}

}  // namespace trtmc
