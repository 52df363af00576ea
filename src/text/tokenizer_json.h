// tokenizer.json to the flat tables of a bundle, at build time only, and back.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trtmc {

// Throws kInvalidArgument for what is malformed, kUnsupported naming what we don't do exactly (byte
// fallback, Metaspace, normalisers, …). Deterministic.
std::vector<std::byte> compile_tokenizer(std::string_view tokenizer_json);

// A tokenizer.json that compiles to `tables`: with the same tokens, merges, splits, added tokens
// and template. What the tables don't keep, since it changes no id, is left out. Throws as
// Tokenizer.
std::string decompile_tokenizer(std::span<const std::byte> tables);

// "16.0.0": of the character classes that the split patterns use.
std::string_view tokenizer_unicode_version();

}  // namespace trtmc
