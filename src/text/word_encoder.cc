#include "text/word_encoder.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "text/bpe.h"

namespace trtmc {
namespace {

// A token at the beginning of a text.
struct Match {
  uint32_t id = kNoId;
  size_t size = 0;  // 0: none.
};

Match longest_match(const PrefixTrie& prefixes, std::string_view text) {
  Match match;
  prefixes.walk(text, [&](const PrefixNode& node, size_t size) {
    if ((node.flags() & kPrefixMerged) != 0) match = {node.id(), size};
  });
  return match;
}

// Whether the bytes of `left` and `right` merge to just these.
bool merge_to_themselves(const TokenizerTables& tables, uint32_t left, uint32_t right) {
  std::string bytes(tables.token_bytes(left));
  bytes += tables.token_bytes(right);
  std::vector<TokenId> ids;
  append_bpe(tables.merges(), bytes, ids);
  return ids == std::vector<TokenId>{static_cast<TokenId>(left), static_cast<TokenId>(right)};
}

// Whether no merge goes across the border between the tokens `left` and `right`. Looks at what
// stands at the border from the end of merging back to the beginning.
bool are_compatible(const TokenizerTables& tables, uint32_t left, uint32_t right) {
  uint32_t u = left, v = right;
  uint32_t u_end = kNoId, v_end = kNoId;  // When they merge into what they are parts of.
  while (true) {
    const TokenParts& u_parts = tables.parts(u);
    const TokenParts& v_parts = tables.parts(v);
    if (const MergeSlot* merge = tables.merges().find(u, v)) {
      const uint32_t order = merge->rank + 1;
      if (order <= std::max(u_parts.order, v_parts.order)) {
        return merge_to_themselves(tables, left, right);
      }
      if (order < u_end && order <= v_end) return false;  // Of equal merges the leftmost is first.
    }
    if (u_parts.order > v_parts.order) {
      u_end = u_parts.order;
      u = u_parts.right;
    } else if (v_parts.order > 0) {
      v_end = v_parts.order;
      v = v_parts.left;
    } else {
      return true;
    }
  }
}

// The search for a row of compatible tokens: the longest token first, shorter ones where it does
// not go on, back where none does.
class Matcher {
 public:
  Matcher(const TokenizerTables& tables, std::string_view word, std::vector<TokenId>& ids)
      : tables_(tables), word_(word), ids_(ids), first_(ids.size()) {}

  // Appends the ids, beginning with `match` if that fits. False, with nothing appended, if it took
  // too many attempts (or damaged tables lead nowhere).
  bool run(Match match) {
    for (size_t misses = 0; at_ < word_.size();) {
      if (match.size == 0) {
        if (!go_back(match)) return give_up();
      } else if (fits(match)) {
        ids_.push_back(static_cast<TokenId>(match.id));
        at_ += match.size;
        match = match_at(tables_.longest_match());
      } else {
        if (++misses > 2 * word_.size()) return give_up();
        match = match_at(match.size - 1);
      }
    }
    return true;
  }

 private:
  Match match_at(size_t max_size) const {
    return longest_match(tables_.prefixes(), word_.substr(at_, max_size));
  }

  bool fits(Match match) const {
    if (!is_dead_.empty() && is_dead_[at_ + match.size]) return false;
    return ids_.size() == first_ ||
           are_compatible(tables_, static_cast<uint32_t>(ids_.back()), match.id);
  }

  // Takes back the last token, since nothing goes on behind it, and looks for a shorter one.
  bool go_back(Match& match) {
    if (ids_.size() == first_) return false;
    is_dead_.resize(word_.size() + 1);
    is_dead_[at_] = true;
    const size_t size = tables_.token_bytes(static_cast<uint32_t>(ids_.back())).size();
    if (size == 0 || size > at_) return false;
    ids_.pop_back();
    at_ -= size;
    match = match_at(size - 1);
    return true;
  }

  bool give_up() {
    ids_.resize(first_);
    return false;
  }

  const TokenizerTables& tables_;
  const std::string_view word_;
  std::vector<TokenId>& ids_;
  const size_t first_;  // The word's ids begin here.
  size_t at_ = 0;
  std::vector<bool> is_dead_;  // Places from which the word can't be ended; empty: none so far.
};

}  // namespace

void append_word(const TokenizerTables& tables, std::string_view word, std::vector<TokenId>& ids) {
  uint32_t whole = kNoId;
  Match match;
  tables.prefixes().walk(word, [&](const PrefixNode& node, size_t size) {
    if ((node.flags() & kPrefixMerged) != 0) match = {node.id(), size};
    if (size == word.size() && (node.flags() & kPrefixWhole) != 0) whole = node.id();
  });
  if (whole != kNoId) return ids.push_back(static_cast<TokenId>(whole));
  if (tables.longest_match() == 0 || !Matcher(tables, word, ids).run(match)) {
    append_bpe(tables.merges(), word, ids);
  }
}

}  // namespace trtmc
