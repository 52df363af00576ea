// A tokenizer as its tokenizer.json describes it, checked, and the way from there to flat tables.
// At build time only. Private to text/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/token.h"
#include "text/pretokenizer.h"

namespace trtmc {

struct AddedTokenSpec {
  TokenId id;
  std::string content;  // Not empty, and no other token's.
  bool single_word, lstrip, rstrip, normalized, special;
};

struct MergeSpec {
  TokenId left, right, result;
};

struct TokenizerSpec {
  std::vector<std::string> vocabulary;  // The model's, by id.
  std::vector<AddedTokenSpec> added;    // Ids of the vocabulary, or the next ones in order.
  std::vector<MergeSpec> merges;        // The first one first. Of equal pairs the last counts.
  bool ignore_merges = false;           // A word that is in the vocabulary becomes that token.
  std::vector<PretokenizerStep> steps;  // kByteLevel last.
  std::vector<TokenId> prefix, suffix;  // What add_special puts around a text.
};

// The tables of `spec`, as TokenizerTables reads them. Deterministic.
std::vector<std::byte> write_tokenizer_tables(const TokenizerSpec& spec);

}  // namespace trtmc
