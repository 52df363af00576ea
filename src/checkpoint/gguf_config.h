// A GGUF's metadata in the words of a Hugging Face checkpoint: what config.json and
// generation_config.json would say. Private to this folder.
#pragma once

#include <vector>

#include "base/json.h"
#include "checkpoint/gguf_file.h"

namespace trtmc {

// What is not in the metadata but follows from the tensors.
struct GgufTensorFacts {
  int64_t vocab_size;          // Rows of the embedding.
  bool tied;                   // There is no output projection.
  bool attention_bias;         // Some attention projection has a bias,
  bool mlp_bias;               // or some projection of an MLP.
  std::vector<float> factors;  // rope_freqs.weight: [head_dim / 2], or empty.
};

// config.json. Throws kUnsupported by name for architectures other than llama and smollm3, for
// mixtures of experts and for other keys that change the maths; kCorrupt for keys that are missing
// or of the wrong kind. Warns of keys of the architecture that are unknown.
Json gguf_config(const GgufMetadata& metadata, const GgufTensorFacts& facts);

// generation_config.json: every id that ends a text, a turn or a message.
Json gguf_generation_config(const GgufMetadata& metadata);

}  // namespace trtmc
