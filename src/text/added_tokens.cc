#include "text/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/unicode_tables.h"

namespace trtmc {
namespace {

// The last code point of `text`, which is UTF-8 and not empty.
CodePoint last_code_point(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return decode_utf8(text.substr(begin)).value_or(CodePoint{0, 1});
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word(last_code_point(text).value);
}

bool starts_with_word(std::string_view text) {
  const auto c = decode_utf8(text);
  return c && is_word(c->value);
}

// Where the white space at the end of `text` begins.
size_t trailing_space_begin(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = last_code_point(text);
    if (!is_white_space(c.value)) break;
    text.remove_suffix(static_cast<size_t>(c.length));
  }
  return text.size();
}

// How many bytes of white space `text` starts with.
size_t leading_space_size(std::string_view text) {
  size_t size = 0;
  for (auto c = decode_utf8(text); c && is_white_space(c->value);
       c = decode_utf8(text.substr(size))) {
    size += static_cast<size_t>(c->length);
  }
  return size;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(const TokenizerTables& tables) : tables_(tables) {
  for (size_t pass = 0; pass < 2; ++pass) {
    const TrieNode& root = tables.trie()[pass];
    for (const TrieNode& child : tables.trie().subspan(root.first_child, root.num_children)) {
      starts_[pass][child.byte] = true;
    }
  }
}

void AddedTokenFinder::split(std::string_view text, FunctionRef<void(std::string_view)> plain,
                             FunctionRef<void(TokenId)> token) const {
  split_pass(
      0, text, [&](std::string_view rest) { split_pass(1, rest, plain, token); }, token);
}

const TrieNode* AddedTokenFinder::child_of(const TrieNode& node, unsigned char byte) const {
  const auto children = tables_.trie().subspan(node.first_child, node.num_children);
  const auto found =
      std::lower_bound(children.begin(), children.end(), byte,
                       [](const TrieNode& a, unsigned char b) { return a.byte < b; });
  return found != children.end() && found->byte == byte ? &*found : nullptr;
}

// Matches are leftmost, then longest, and never overlap. A match that is refused (single_word) or
// widened over white space (lstrip, rstrip) does not move where the search goes on: `tokenizers`
// searches first and judges afterwards.
void AddedTokenFinder::split_pass(size_t pass, std::string_view text,
                                  FunctionRef<void(std::string_view)> plain,
                                  FunctionRef<void(TokenId)> token) const {
  size_t done = 0;  // Up to here the text has been handed out.
  for (size_t at = 0; at < text.size();) {
    if (!starts_[pass][static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const TrieNode* node = &tables_.trie()[pass];
    uint32_t match = kNoId;
    size_t match_end = at;
    for (size_t i = at; i < text.size(); ++i) {
      node = child_of(*node, static_cast<unsigned char>(text[i]));
      if (node == nullptr) break;
      if (node->added == kNoId) continue;
      match = node->added;
      match_end = i + 1;
    }
    if (match == kNoId) {
      ++at;
      continue;
    }
    size_t begin = at, end = match_end;
    at = match_end;
    const AddedRecord& added = tables_.added_tokens()[match];
    if ((added.flags & kAddedSingleWord) != 0 &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if ((added.flags & kAddedStripLeft) != 0) {
      begin = std::max(trailing_space_begin(text.substr(0, begin)), done);
    }
    if ((added.flags & kAddedStripRight) != 0) end += leading_space_size(text.substr(end));
    if (done < begin) plain(text.substr(done, begin - done));
    // White space that the token before has taken leaves nothing of this one.
    if (begin < end) token(static_cast<TokenId>(added.id));
    done = end;
  }
  if (done < text.size()) plain(text.substr(done));
}

}  // namespace trtmc
