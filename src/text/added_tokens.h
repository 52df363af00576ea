// Finds the added tokens in a text, in the two passes of `tokenizers` and with its rules on words
// and white space (added_vocabulary.rs). Private to text/.
#pragma once

#include <array>
#include <string_view>

#include "base/function_ref.h"
#include "base/token.h"
#include "text/tokenizer_tables.h"

namespace trtmc {

class AddedTokenFinder {
 public:
  // Borrows the tables.
  explicit AddedTokenFinder(const TokenizerTables& tables);

  // Cuts `text` into added tokens, given to `token`, and what lies between, given to `plain`, in
  // order. No plain stretch is empty.
  void split(std::string_view text, FunctionRef<void(std::string_view)> plain,
             FunctionRef<void(TokenId)> token) const;

 private:
  void split_pass(size_t pass, std::string_view text, FunctionRef<void(std::string_view)> plain,
                  FunctionRef<void(TokenId)> token) const;
  const TrieNode* child_of(const TrieNode& node, unsigned char byte) const;

  const TokenizerTables& tables_;
  std::array<std::array<bool, 256>, 2> starts_{};  // [pass, byte]: a token begins with it.
};

}  // namespace trtmc
