// The loops around a tile of a product, shared by the products of floats and of quantised weights:
// some vectors of rows, side by side, times a few tokens. Compiled once per instruction set, into
// names of its own.
#pragma once

#include "backends/cpu/kernels/kernel_table.h"

// Sums live in arrays; only loops that vanish keep those in registers.
#if defined(__clang__)
#define TRTMC_UNROLL _Pragma("unroll")
#define TRTMC_ROLLED _Pragma("nounroll")
#else
#define TRTMC_UNROLL _Pragma("GCC unroll 32")
#define TRTMC_ROLLED _Pragma("GCC unroll 1")
#endif

namespace trtmc::cpu::TRTMC_ISA {
namespace {

constexpr int smaller(int a, int b) { return a < b ? a : b; }

// Widths of a tile, in tokens: 12, 8, 4, 2, 1 or 6, 4, 2, 1 or 2, 1; empty places are zero.
constexpr int next_smaller_width(int width) { return width == 12 ? 8 : width == 6 ? 4 : width / 2; }
constexpr int tile_width(int most, int tokens) {
  int width = most;
  while (next_smaller_width(width) >= tokens) width = next_smaller_width(width);
  return width;
}

// A stretch of columns of all panels times the tokens of one tile.
struct TileArgs {
  const MatmulArgs& args;
  int64_t first;  // Column.
  int64_t columns;
  bool adds;  // To y, as every stretch does but the first.
  int first_token;
  int num_tokens;  // At most the tile's width; the other places are empty.
};

// Kernel: kTileTokens, kColumnsAtATime, parts_for(width), kPanelParts and
// multiply<Parts, Width>(TileArgs, first_part), which does `Parts` parts of kPanelRows /
// kPanelParts rows each.
template <typename Kernel, int Width>
inline void multiply_parts(const TileArgs& tile) {
  constexpr int kParts = Kernel::parts_for(Width);
  const int num_parts = tile.args.num_panels * Kernel::kPanelParts;
  int part = 0;
  for (; part + kParts <= num_parts; part += kParts) {
    Kernel::template multiply<kParts, Width>(tile, part);
  }
  constexpr int kRest = smaller(kParts, Kernel::kPanelParts);
  for (; part < num_parts; part += kRest) Kernel::template multiply<kRest, Width>(tile, part);
}

template <typename Kernel, int Width>
inline void multiply_width(int width, const TileArgs& tile) {
  if (width == Width) {
    multiply_parts<Kernel, Width>(tile);
  } else if constexpr (Width > 1) {
    multiply_width<Kernel, next_smaller_width(Width)>(width, tile);
  }
}

template <typename Kernel>
void matmul(const MatmulArgs& args) {
  // A single token's sums never leave the registers.
  const int64_t step = args.num_tokens == 1 ? args.k : Kernel::kColumnsAtATime;
  for (int64_t first = 0; first < args.k; first += step) {
    const int64_t columns = args.k - first < step ? args.k - first : step;
    for (int token = 0; token < args.num_tokens; token += Kernel::kTileTokens) {
      const int count = smaller(Kernel::kTileTokens, args.num_tokens - token);
      multiply_width<Kernel, Kernel::kTileTokens>(
          tile_width(Kernel::kTileTokens, count),
          {args, first, columns, args.adds || first > 0, token, count});
    }
  }
}

}  // namespace
}  // namespace trtmc::cpu::TRTMC_ISA
