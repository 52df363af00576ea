// The names of tokenizer.ggml.pre and what they mean. Private to this folder.
#pragma once

#include <string_view>

namespace trtmc {

struct GgufPretokenizer {
  std::string_view name;
  std::string_view pre_tokenizer;  // As tokenizer.json has it.
  std::string_view normalizer;     // Likewise; empty: none.
  bool ignore_merges;
  bool adds_bos;  // Where tokenizer.ggml.add_bos_token is not given.
};

// Throws kUnsupported for an unknown name, listing the known ones.
const GgufPretokenizer& find_gguf_pretokenizer(std::string_view name);

}  // namespace trtmc
