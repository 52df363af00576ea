#include "model/decoder_ops.h"

namespace trtmc {

Value DecoderOps::attention_block(const DecoderSpec& spec, int layer, Value x) {
  const LayerSpec& layer_spec = spec.layers[static_cast<size_t>(layer)];
  const Value normed = rms_norm(x, {Role::kAttentionNorm, layer}, spec.rms_norm_eps);
  Value q = linear(normed, {Role::kQProj, layer});
  Value k = linear(normed, {Role::kKProj, layer});
  const Value v = linear(normed, {Role::kVProj, layer});
  if (layer_spec.rope) {
    q = rope(q, spec.rope, spec.num_heads);
    k = rope(k, spec.rope, spec.num_kv_heads);
  }
  const Value mixed = attention(q, k, v, layer, layer_spec);
  return add(x, linear(mixed, {Role::kOProj, layer}));
}

Value DecoderOps::mlp_block(const DecoderSpec& spec, int layer, Value x) {
  const Value normed = rms_norm(x, {Role::kMlpNorm, layer}, spec.rms_norm_eps);
  const Value gate = linear(normed, {Role::kGateProj, layer});
  const Value up = linear(normed, {Role::kUpProj, layer});
  return add(x, linear(swiglu(gate, up), {Role::kDownProj, layer}));
}

void DecoderOps::observe(int /*layer*/, Value /*x*/) {}

Value decoder_forward(const DecoderSpec& spec, DecoderOps& ops) {
  Value x = ops.embed({Role::kEmbedding});
  ops.observe(-1, x);
  for (int layer = 0; layer < spec.num_layers(); ++layer) {
    x = ops.attention_block(spec, layer, x);
    x = ops.mlp_block(spec, layer, x);
    ops.observe(layer, x);
  }
  x = ops.rms_norm(ops.select_rows(x), {Role::kFinalNorm}, spec.rms_norm_eps);
  return ops.linear(x, {spec.tied_embeddings ? Role::kEmbedding : Role::kLmHead});
}

}  // namespace trtmc
