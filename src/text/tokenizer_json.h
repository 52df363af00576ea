// tokenizer.json to the flat tables of a bundle; at build time only.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace trtmc {

// Throws kInvalidArgument for what is malformed, kUnsupported naming what we don't do exactly (byte
// fallback, Metaspace, normalisers, …). Deterministic.
std::vector<std::byte> compile_tokenizer(std::string_view tokenizer_json);

// "16.0.0": of the character classes that the split patterns use.
std::string_view tokenizer_unicode_version();

}  // namespace trtmc
