// The ids of one word by matching tokens against its bytes, which gives what merging gives with
// far fewer look-ups. Private to text/.
//
// Why it is exact. Between the two ends of a token of the result nothing merges across, so inside
// of them merging goes as if the rest of the word were not there. Hence
// 1. every token of a result is what its own bytes alone merge to, and
// 2. tokens t1 … tn are the result for their bytes just if each two neighbours are the result for
//    theirs: up to a first merge across a border, the two tokens beside it go the same way alone.
// By 1 the result of a beginning of a word is unique; so a search for a row of compatible
// neighbours over the whole word finds the result, and need look at each place at most once.
//
// When a merge happens: merging takes the lowest rank first, but a rank can come up late, so a
// token's last merge happens when all ranks up to the highest of its merges have had their turn.
// TokenParts::order is that rank. Two neighbours go their ways in order of it, the left one first
// where it is equal. So what stands at their border at one time is known, and a merge across it
// happens if its turn comes while both its parts stand there. Only where its rank had its turn
// before both were there, the two tokens are merged to see.
#pragma once

#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/tokenizer_tables.h"

namespace trtmc {

// Appends the ids of `word`, which is not empty: the one token that it is as a whole, or what
// append_bpe would append.
void append_word(const TokenizerTables& tables, std::string_view word, std::vector<TokenId>& ids);

}  // namespace trtmc
