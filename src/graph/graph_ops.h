// The forward pass as a graph: DecoderOps that records each operation into a NetworkSink. The walk
// is decoder_forward, as for the backends that run it; there is no second definition of the model.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "graph/network_sink.h"
#include "model/decoder_ops.h"

namespace trtmc {

// What a graph looks like from outside: its inputs and outputs, and who does what.
//
//   input_ids, position_ids        indices [batch_size, sequence_length]
//   past_key_values.N.key, .value  [batch_size, KV heads, past_sequence_length, D]
//   logits                         [batch_size, sequence_length, vocabulary]
//   present.N.key, .value          [batch_size, KV heads, total_sequence_length, D]
//
// These are the names that Hugging Face Optimum gives them.
struct GraphForm {
  // What becomes of keys and values.
  enum class Cache {
    kPastPresent,  // past_key_values.N comes in, present.N, longer by the new tokens, goes out.
    kInPlace,      // past_key_values.N is a cache [batch_size, KV heads, cache_capacity, D]; the
               // new tokens go in at `write_indices` [batch_size] and it comes out as present.N.
  };
  // Who says which tokens a query sees.
  enum class Mask {
    kFromTokens,  // The graph, from attention_mask [batch_size, total_sequence_length]: 1 for a
                  // token, 0 for padding. Not with kInPlace.
    kGiven,       // The caller: `mask`, and `mask.window.N` for layers that see the last N tokens
                  // only, bool [batch_size, 1, sequence_length, T]. With
                  // kInPlace T may be less than the capacity: the rest is not read.
  };
  // Of which tokens logits come out.
  enum class Logits {
    kEveryToken,
    kSelected,  // Of `logits_rows` [logits_rows], tokens counted along batch and sequence: [1,
                // logits_rows, vocabulary].
  };

  ElementType type = ElementType::kFloat32;      // f32, f16 or bf16.
  std::vector<int> fp32_layers = {};             // Of float32 whatever the type; rising.
  ElementType index_type = ElementType::kInt64;  // Of ids, positions, masks of 0 and 1.
  ElementType logits_type = ElementType::kFloat32;
  Cache cache = Cache::kPastPresent;
  Mask mask = Mask::kFromTokens;
  Logits logits = Logits::kEveryToken;
};

// The type of a layer's weights, activations, keys and values; of what is outside layers (-1), the
// form's.
ElementType layer_type(const GraphForm& form, int layer);

// Records the whole decoder: inputs, the walk of decoder_forward(spec), outputs. Rotations take
// their cosines and sines from a table of float32 for every position of the context
// (model/rope_table.h), so each scaling is the same graph with other values. Norms and rotations
// are worked out in float32 and rounded once to the layer's type; the rest has that type. Throws
// kUnsupported for a context whose tables are larger than 256 MiB each.
void record_decoder(const DecoderSpec& spec, const GraphForm& form, NetworkSink& sink);

class GraphOps final : public DecoderOps {
 public:
  // Records the inputs.
  GraphOps(const DecoderSpec& spec, const GraphForm& form, NetworkSink& sink);

  Value embed(TensorKey table) override;
  Value rms_norm(Value x, TensorKey weight, float eps) override;
  Value linear(Value x, TensorKey weight) override;
  Value rope(Value x, const RopeSpec& rope, int num_heads) override;
  Value attention(Value q, Value k, Value v, int layer, const LayerSpec& spec) override;
  Value swiglu(Value gate, Value up) override;
  Value add(Value a, Value b) override;
  Value select_rows(Value x) override;
  Value attention_block(const DecoderSpec& spec, int layer, Value x) override;
  Value mlp_block(const DecoderSpec& spec, int layer, Value x) override;

  // Records the outputs.
  void finish(Value logits);

 private:
  struct LayerCache {
    NetworkTensor key, value;
  };

  // x in the type of a layer (-1: outside), which operations have from here on.
  Value enter(int layer, Value x);
  // What is worked out in float32 and rounded once: body takes x in float32, and gives float32.
  template <typename Body>
  NetworkTensor in_float32(NetworkTensor x, Body body);
  void record_inputs();
  void record_masks();
  void record_angles(const RopeSpec& rope);
  // x [B, S, heads * D] by heads, unless it is already.
  NetworkTensor by_heads(Value x, int heads);
  NetworkTensor with_past(NetworkTensor past, NetworkTensor x);

  const DecoderSpec& spec_;
  const GraphForm& form_;
  NetworkSink& sink_;
  ElementType type_;  // Of the layer that is being recorded.
  NetworkTensor ids_{}, attention_mask_{}, positions_{};
  NetworkTensor write_indices_{}, logits_rows_{};
  std::map<int, NetworkTensor> masks_;  // By window; 0: none.
  std::vector<LayerCache> past_, present_;
  struct Angles {
    NetworkTensor cos, sin;  // [B, S, rotary_dim / 2]
  };
  std::optional<Angles> angles_;  // Of every layer that rotates.
  std::set<Value> by_heads_;      // Those that are [B, heads, S, D].
};

}  // namespace trtmc
