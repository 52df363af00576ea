// Byte-level BPE exactly as Hugging Face tokenizers runs the published tokenizer.json. Works on
// flat tables (see tokenizer_tables.h), so loading is mapping. Thread-safe: const after
// construction.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace trtmc {

struct EncodeOptions {
  bool add_special = false;  // What the checkpoint's post-processor adds around a text.
  bool match_added = true;   // Added tokens in the text become their ids, as in Transformers.
};

class Tokenizer {
 public:
  // `tables` as compile_tokenizer made them; copied. Throws kCorrupt, or kUnsupported for another
  // version of the tables.
  explicit Tokenizer(std::span<const std::byte> tables);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Throws kInvalidArgument with the offset if `text` is not UTF-8.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The exact bytes, without clean-up; may end within a code point. Ids without a token are refused
  // with kInvalidArgument.
  std::string decode(std::span<const TokenId> ids, bool skip_special) const;

  // The bytes that a token stands for; empty for an id without a token.
  std::string_view token_bytes(TokenId id) const;
  bool is_special(TokenId id) const;  // By the token's own `special` flag.
  int num_ids() const;                // One more than the largest id.
  // The id whose text in the vocabulary or among the added tokens is `content`, for example
  // "<|im_end|>".
  std::optional<TokenId> find(std::string_view content) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace trtmc
