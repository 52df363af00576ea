// The tokenizer of a GGUF as a tokenizer.json. Private to this folder.
#pragma once

#include <optional>

#include "base/json.h"
#include "checkpoint/gguf_metadata.h"

namespace trtmc {

// Nothing where the file has no tokenizer. Byte-level BPE only ("gpt2"); the split pattern follows
// from tokenizer.ggml.pre, whose names stand for published tokenizers (llama.cpp's
// conversion/base.py says which): here is what those tokenizers' own tokenizer.json says. Tokens of
// type "control" become special added tokens, those of "user defined" plain added ones, and unused
// ones at the end, which pad the embedding, are left out.
//
// Throws kUnsupported naming other models and pre-tokenizers, kCorrupt for contradicting arrays and
// ids.
std::optional<Json> gguf_tokenizer(const GgufMetadata& metadata);

// What tokenizer_config.json would say: "bos_token" and the like, and the added tokens. Nothing and
// throws as above, but for the pre-tokenizer.
std::optional<Json> gguf_tokenizer_config(const GgufMetadata& metadata);

}  // namespace trtmc
