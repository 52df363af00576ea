// What becomes of the sums of a product: the same for every kernel that makes them.
#pragma once

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/product.h"

namespace trtmc::cuda {

__device__ __forceinline__ float4 added(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

__device__ __forceinline__ float added_to(const ProductArgs& args, float* out, float value) {
  return args.epilogue == Epilogue::kAdd ? __fadd_rn(*out, value) : value;
}

// Rows row .. row + 3 of one token; row is a multiple of 4. `kTerms`: of kSwiglu.
template <int kTerms>
__device__ __forceinline__ void finish_four(const ProductArgs& args, int token, int row,
                                            float4 sums) {
  if (args.epilogue == Epilogue::kSwiglu) {
    store_terms<kTerms>(args.out_terms, token, row / 2, silu_times(sums.x, sums.y),
                        silu_times(sums.z, sums.w));
    return;
  }
  float* out = args.out + token * args.out_stride;
  if (args.row_distance == 2) {
    out += row / 2;
    if (row / 2 < args.num_rows) out[0] = args.first_row == 0 ? sums.x : sums.y;
    if (row / 2 + 1 < args.num_rows) out[1] = args.first_row == 0 ? sums.z : sums.w;
    return;
  }
  out += row;
  if (row + 3 < args.num_rows) {
    auto* four = reinterpret_cast<float4*>(out);
    if (args.epilogue == Epilogue::kAdd) {
      sums = added(*four, sums);
    }
    *four = sums;
    return;
  }
  if (row < args.num_rows) out[0] = added_to(args, out, sums.x);
  if (row + 1 < args.num_rows) out[1] = added_to(args, out + 1, sums.y);
  if (row + 2 < args.num_rows) out[2] = added_to(args, out + 2, sums.z);
}

// Tiles of a warp as multiply_add() leaves them: 16 rows from `row` on, 8 tokens from `token` on in
// each. sums: [kTiles][4].
template <int kTerms, int kTiles>
__device__ __forceinline__ void finish_tiles(const ProductArgs& args, int token, int row,
                                             const float* sums, int lane) {
  constexpr int kAtOnce = kTiles < 4 ? kTiles : 4;
  // A lane has two rows of two tokens, the lane of the next two rows is four further: each of the
  // two takes one of the tokens.
  const bool odd = lane / 4 % 2 != 0;
  token += lane % 4 * 2 + (odd ? 1 : 0);
  row += lane / 8 * 4;
  if (row >= args.num_panels * kPanelRows) return;  // The same for a whole warp.
  const bool adds = args.epilogue == Epilogue::kAdd && row + 3 < args.num_rows;
#pragma unroll
  for (int first = 0; first < kTiles; first += kAtOnce) {
    float4 four[kAtOnce], before[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      // All that is added to is asked for before anything is stored.
      const int at = token + (first + i) * 8;
      if (adds && at < args.num_tokens) {
        before[i] = *reinterpret_cast<const float4*>(args.out + at * args.out_stride + row);
      }
      const float* of = sums + 4 * (first + i);
      const float mine = odd ? of[0] : of[1];
      const float more = odd ? of[2] : of[3];
      const float other = __shfl_xor_sync(kFullMask, mine, 4);
      const float other_more = __shfl_xor_sync(kFullMask, more, 4);
      four[i] = odd ? make_float4(other, other_more, of[1], of[3])
                    : make_float4(of[0], of[2], other, other_more);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = token + (first + i) * 8;
      if (at >= args.num_tokens) break;
      if (adds) {
        *reinterpret_cast<float4*>(args.out + at * args.out_stride + row) =
            added(before[i], four[i]);
      } else {
        finish_four<kTerms>(args, at, row, four[i]);
      }
    }
  }
}

}  // namespace trtmc::cuda
