// The vocabulary that a decoder's forward pass is written in, and the pass itself. A backend
// implements the vocabulary by running it or by recording it; there is no second definition of the
// model.
#pragma once

#include "model/decoder_spec.h"
#include "model/tensor_key.h"

namespace trtmc {

// A tensor of [tokens of the step, width], named by whoever made it: a slot of an arena, a device
// offset, a line of a trace. Values made inside attention_block or mlp_block end with the block.
enum class Value : int {};

class DecoderOps {
 public:
  virtual ~DecoderOps() = default;

  // The rows of `table` for the step's tokens: [tokens, hidden].
  virtual Value embed(TensorKey table) = 0;
  // x / sqrt(mean(x^2) + eps) * weight, over each row.
  virtual Value rms_norm(Value x, TensorKey weight, float eps) = 0;
  // x W^T for W [out, in]: [tokens, out].
  virtual Value linear(Value x, TensorKey weight) = 0;
  // Rotates each head of x [tokens, num_heads * head_dim] by its token's position, in the
  // half-split (NeoX) pairing.
  virtual Value rope(Value x, const RopeSpec& rope, int num_heads) = 0;
  // Stores k and v [tokens, kv_width] as this layer's cache entries of the step's positions, then
  // softmax(q k^T / sqrt(head_dim)) v over each token's own sequence up to its own position:
  // [tokens, q_width].
  virtual Value attention(Value q, Value k, Value v, int layer, const LayerSpec& spec) = 0;
  // silu(gate) * up, silu(x) = x / (1 + exp(-x)).
  virtual Value swiglu(Value gate, Value up) = 0;
  virtual Value add(Value a, Value b) = 0;
  // The rows whose logits are wanted: [logits_rows, hidden].
  virtual Value select_rows(Value x) = 0;

  // x + attention(norm(x)) and x + mlp(norm(x)). By default composed of the above; a backend may do
  // better at this grain.
  virtual Value attention_block(const DecoderSpec& spec, int layer, Value x);
  virtual Value mlp_block(const DecoderSpec& spec, int layer, Value x);

  // Told the hidden state after the embedding (layer -1) and after each layer. For probes; does
  // nothing.
  virtual void observe(int layer, Value x);
};

// The whole model: token ids to logits [logits_rows, vocab].
Value decoder_forward(const DecoderSpec& spec, DecoderOps& ops);

}  // namespace trtmc
