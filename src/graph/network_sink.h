// What a decoder's graph is recorded into: a file (onnx_sink.h), a text (recording_sink.h), a
// builder of TensorRT. A few operations that every such system has; whatever one of them lacks is
// put together of the others here, once, so that all systems get the same graph.
//
// Axes by their letters: B batch, S the tokens of this run, T all tokens that a query may see (S
// and those before them), H heads, D values of a head, W any width. "The type" of a graph is
// GraphForm::type: that of activations and of cached keys and values. Nothing is converted
// silently: both sides of an operation have one type, and what has to be float32 says so.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tensor_key.h"

namespace trtmc {

enum class ElementType { kFloat32, kFloat16, kBFloat16, kInt32, kInt64, kBool };

std::string_view element_type_name(ElementType type);  // "f32", "f16", "bf16", "i32", "i64", "bool"
size_t element_bytes(ElementType type);

// A tensor of the network, numbered by the sink that made it.
enum class NetworkTensor : int {};

// One axis of what goes in or comes out. Axes with the same name have the same length in a run.
struct Axis {
  // Not a constructor, so that {64, {}} and {0, "batch_size"} read as what they are.
  int64_t length;         // 0: it differs from run to run.
  std::string_view name;  // Of a length that differs.
};

class NetworkSink {
 public:
  virtual ~NetworkSink() = default;

  // ---- The border. Names are unique; every input comes before the first operation.
  virtual NetworkTensor input(std::string_view name, ElementType type,
                              std::span<const Axis> axes) = 0;
  virtual void output(std::string_view name, ElementType type, NetworkTensor x,
                      std::span<const Axis> axes) = 0;

  // ---- Weights, by key: where they come from, how they lie and what they are stored as is
  // between the sink and the bundle (weight_stream.h). Matrices have the type of
  // their layer, which is x's.
  // Rows of the matrix `table` at ids [B, S]: [B, S, W].
  virtual NetworkTensor embed(NetworkTensor ids, const TensorKey& table) = 0;
  // x W^T for the weight W [out, in] and x [B, S, in]: [B, S, out].
  virtual NetworkTensor linear(NetworkTensor x, const TensorKey& weight) = 0;
  // A weight that is a vector, in float32: [1, 1, W].
  virtual NetworkTensor vector(const TensorKey& weight) = 0;
  // Values that were worked out, in float32. One name has one value: asked for it again, a sink may
  // give the same tensor.
  virtual NetworkTensor constant(std::string_view name, const Shape& shape,
                                 std::vector<float> values) = 0;

  // ---- Element by element. a and b: equal rank and type; an axis of 1 is stretched to the
  // other's.
  enum class Binary { kAdd, kSubtract, kMultiply, kDivide };
  enum class Unary { kSquareRoot, kSigmoid };
  virtual NetworkTensor binary(Binary operation, NetworkTensor a, NetworkTensor b) = 0;
  virtual NetworkTensor unary(Unary operation, NetworkTensor x) = 0;
  virtual NetworkTensor cast(NetworkTensor x, ElementType type) = 0;
  // The mean over the last axis, which stays, with length 1.
  virtual NetworkTensor mean(NetworkTensor x) = 0;

  // ---- Arrangement.
  // Rows of the constant table [N, W] at indices [B, S]: [B, S, W].
  virtual NetworkTensor gather(NetworkTensor table, NetworkTensor indices) = 0;
  // Tokens `rows` [R] of x [B, S, W], numbered along B and S: [1, R, W].
  virtual NetworkTensor select_tokens(NetworkTensor x, NetworkTensor rows) = 0;
  // [B, S, heads * D] to [B, heads, S, D], and back.
  virtual NetworkTensor split_heads(NetworkTensor x, int heads) = 0;
  virtual NetworkTensor merge_heads(NetworkTensor x) = 0;
  // Values [first, first + count) of the last axis.
  virtual NetworkTensor slice(NetworkTensor x, int first, int count) = 0;
  // One after the other along `axis`, which counts from 0.
  virtual NetworkTensor concat(std::span<const NetworkTensor> parts, int axis) = 0;

  // ---- Attention.
  // softmax(q k^T / sqrt(D)) v where mask is true: q [B, H, S, D], k and v [B, KV heads, T, D] of
  // `type`, with KV heads a divisor of H (query head h reads KV head h / (H / KV heads)), mask bool
  // [B or 1, 1, S, T]. Every query sees something. A system that takes no scale gets q * (1 /
  // sqrt(D)), worked out in float32 and rounded once; masks of its own ("causal", where queries or
  // caches begin) are not to be relied on.
  virtual NetworkTensor attention(NetworkTensor q, NetworkTensor k, NetworkTensor v,
                                  NetworkTensor mask, ElementType type) = 0;
  // Writes update [B, H, S, D] into cache [B, H, capacity, D] at positions write_indices[b] + s, in
  // place, and gives the cache. For GraphForm::Cache::kInPlace only.
  virtual NetworkTensor update_cache(NetworkTensor cache, NetworkTensor update,
                                     NetworkTensor write_indices) = 0;
  // The mask [B, 1, S, T] of S queries, the last of T tokens: query s sees token t if t <= T - S +
  // s, t > T - S + s - window (window > 0; 0: no bound), and attention_mask[b, t] [B, T] is not 0.
  // Itself it sees always: a query that is padding would see nothing else, and softmax over nothing
  // is no number. `ids` [B, S] tells S. For GraphForm::Mask::kFromTokens only.
  virtual NetworkTensor causal_mask(NetworkTensor attention_mask, NetworkTensor ids,
                                    int window) = 0;

  // ---- What not every system has, composed of the above unless a sink does better.
  // x / sqrt(mean(x^2) + epsilon) * weight over the last axis, all in float32: x [B, S, W], weight
  // [1, 1, W]. (What TensorRT calls a normalisation subtracts the mean and is something else.)
  virtual NetworkTensor rms_norm(NetworkTensor x, NetworkTensor weight, float epsilon);
  // Rotates the first rotary_dim values of each head, all in float32: of the pairs (i, i +
  // rotary_dim / 2) of x [B, H, S, D] by cos and sin [B, S, rotary_dim / 2]. D is head_dim.
  virtual NetworkTensor rotate(NetworkTensor x, NetworkTensor cos, NetworkTensor sin,
                               int rotary_dim, int head_dim);
  // x / (1 + exp(-x)).
  virtual NetworkTensor silu(NetworkTensor x);
};

}  // namespace trtmc
