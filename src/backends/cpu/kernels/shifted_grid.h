// The grid of q4 as unsigned bytes: what products of unsigned and signed bytes look up.
#pragma once

#include <cstdint>

#include "tensor/block_formats.h"

namespace trtmc::cpu::TRTMC_ISA {

struct ShiftedGrid {
  uint8_t values[16];  // kQ4Grid + 128.
};
constexpr ShiftedGrid make_shifted_grid() {
  ShiftedGrid grid{};
  for (int i = 0; i < 16; ++i) grid.values[i] = static_cast<uint8_t>(kQ4Grid[i] + kQ8Zero);
  return grid;
}
constexpr ShiftedGrid kShiftedGrid = make_shifted_grid();

}  // namespace trtmc::cpu::TRTMC_ISA
