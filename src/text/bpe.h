// Byte-pair encoding of one word. Private to text/.
#pragma once

#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/tokenizer_tables.h"

namespace trtmc {

// Appends the ids of `word`: its bytes as symbols, merged two at a time, always the pair of lowest
// rank and of these the leftmost, until no pair merges. `word` is shorter than 2 GiB; time grows as
// n log n.
void append_bpe(const TokenizerTables& tables, std::string_view word, std::vector<TokenId>& ids);

}  // namespace trtmc
