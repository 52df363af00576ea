// The keys that the configurations of Llama and its descendants write alike. Shared by the
// families.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/decoder_spec.h"

namespace trtmc {

// Where the Transformers classes of the families differ when a key is missing.
struct DecoderDefaults {
  bool tied_embeddings;    // tie_word_embeddings
  double rope_theta;       // Taken with a warning.
  bool kv_heads_required;  // Else a missing num_key_value_heads is one for each head, as null is.
};

// The size `key`, which must be there. Throws kInvalidArgument unless it is 1 to 2^28; what a
// model can be is for validate() to say.
int read_size(const JsonCursor& config, std::string_view key);
// num_hidden_layers.
int read_num_layers(const JsonCursor& config);
bool read_flag(const JsonCursor& config, std::string_view key, bool fallback);

// Throws kUnsupported for attention_bias, mlp_bias and activations other than silu; warns if
// model_type is there and another than `model_type`.
void require_plain_decoder(const JsonCursor& config, std::string_view model_type);

// Sizes, heads, context, epsilon, tying and rotation of a decoder of these layers. Sizes and
// epsilon must be there: the classes' defaults are another model's. head_dim may be missing or null
// where hidden_size is a multiple of num_attention_heads. The spec has passed validate().
DecoderSpec read_decoder(const JsonCursor& config, std::vector<LayerSpec> layers,
                         const DecoderDefaults& defaults);

// The inverse: what read_decoder() reads, as Transformers 4 and later write it.
Json write_decoder(const DecoderSpec& spec);

}  // namespace trtmc
