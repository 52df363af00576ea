// Keys and values of q8: what a backend keeps of one head at one position.
#pragma once

#include <cstdint>
#include <span>

namespace trtmc {

// Fills codes [as many as x] and returns the scale: x is about scale * code, with codes from -127
// to 127, the largest magnitude at an end, each rounded to the nearest, ties to even. What is below
// 2^-100 throughout is zeros; where something isn't finite the scale is not a number.
float head_to_bytes(std::span<const float> x, std::span<int8_t> codes);

}  // namespace trtmc
