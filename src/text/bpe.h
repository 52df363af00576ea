// Byte-pair encoding of one word. Private to text/.
#pragma once

#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/merge_table.h"

namespace trtmc {

// Appends the ids of `word`: its bytes as symbols, merged two at a time, always the pair of lowest
// rank and of these the leftmost, until no pair merges or `min_symbols` are left. `word` is shorter
// than 2 GiB; time grows as n log n.
void append_bpe(const MergeTable& merges, std::string_view word, std::vector<TokenId>& ids,
                size_t min_symbols = 1);

}  // namespace trtmc
