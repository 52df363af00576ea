// The kernels of one instruction set, as plain functions over plain structs. Rows of activations
// are filled up with zeros to a multiple of 16 floats, so no kernel has a tail.
//
// What fixes the bits: every product adds along k (or along the head, or the positions of a block)
// one element after the other with one multiply-add, fused if the unit has it, whatever the tile,
// the number of tokens or the thread; what adds across lanes does so in one tree. Products of
// quantised weights add block after block, to the same bits with every instruction set
// (quantized.cc).
#pragma once

#include <cstdint>

namespace trtmc::cpu {

constexpr int kPanelRows = 16;
// Positions of a KV block: the scores of one query against a block are two registers of AVX-512.
constexpr int kKvBlockSize = 32;

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A token's 32 columns as bytes: those, in fours, their sum twice, their scale.
constexpr int64_t kQuantizedBlockWords = 11;
// Words of a token of `columns` columns, which are filled up to whole groups of 64.
constexpr int64_t quantized_width(int64_t columns) {
  return round_up(columns, 64) / 32 * kQuantizedBlockWords;
}

// y[t][16 p + r] = sum over k of W[p][r][k] x[t][k], for panels p of tensor/packed_layout.h; or
// that much is added to y.
struct MatmulArgs {
  const void* panels;
  int64_t panel_bytes;
  int num_panels;
  int64_t k;        // Padded columns of a panel.
  const void* x;    // Tiles of tokens as pack_tokens or quantize_tokens leaves them.
  int64_t x_width;  // Words of four bytes of x a token: at least k, or quantized_width(k).
  int num_tokens;
  float* y;
  int64_t y_stride;   // In floats, from token to token.
  bool adds = false;  // Goes on with the sums in y.
};

// One query position against one KV block and one KV head: the running softmax of its heads.
struct AttentionArgs {
  const float* q;  // [num_heads, head_dim]: the query heads that share the KV head.
  int num_heads;
  int head_dim;        // A multiple of 16.
  const void* keys;    // [head_dim, kKvBlockSize]; bytes have scales [kKvBlockSize] behind them,
  const void* values;  // [kKvBlockSize, head_dim]; likewise.
  int first;           // The positions [first, last) of the block are seen.
  int last;
  float scale;  // Of the scores.
  // In and out, per head: the largest score, the sum of weights, the weighted values.
  float* largest;  // [num_heads]; at first -infinity
  float* sum;      // [num_heads]; at first 0
  float* mixed;    // [num_heads, head_dim]; at first 0
};

using MatmulKernel = void (*)(const MatmulArgs& args);

struct KernelTable {
  const char* name;
  // Tokens that pack_tokens puts together at most.
  int tile_tokens;

  // Interleaves up to tile_tokens rows of x [num_tokens, width] for matmul. The tile takes up to
  // tile_tokens * width floats of `out`, where the next one starts. A tile of one token is its row.
  void (*pack_tokens)(const float* x, int num_tokens, int64_t width, float* out);
  MatmulKernel matmul_f32;
  MatmulKernel matmul_f16;
  MatmulKernel matmul_bf16;

  // Makes rows of x [num_tokens, width] bytes for the products of quantised weights of `columns`
  // columns, a multiple of 64 and at least the width, which is a multiple of 16. out: whole tiles,
  // so tile_tokens * quantized_width(columns) words. rest: null, or [num_tokens, width]: what the
  // bytes don't say of x; may be x.
  void (*quantize_tokens)(const float* x, int num_tokens, int64_t width, int64_t columns, void* out,
                          float* rest);
  MatmulKernel matmul_q8;
  MatmulKernel matmul_q6;
  MatmulKernel matmul_q4;

  void (*attend_f32)(const AttentionArgs& args);
  void (*attend_bf16)(const AttentionArgs& args);
  void (*attend_q8)(const AttentionArgs& args);
  void (*attend_fp8)(const AttentionArgs& args);

  // out = x / sqrt(mean(x^2) + eps) * weight over `width` floats; `padded` of them are there.
  void (*rms_norm)(const float* x, const float* weight, int64_t width, int64_t padded, float eps,
                   float* out);
  // Element by element; n is a multiple of 16. Outputs may be the inputs.
  void (*swiglu)(const float* gate, const float* up, int64_t n, float* out);
  void (*add)(const float* a, const float* b, int64_t n, float* out);
  void (*exp)(const float* x, int64_t n, float* out);
  void (*divide)(const float* x, float divisor, int64_t n, float* out);
};

}  // namespace trtmc::cpu
