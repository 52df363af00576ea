#include "text/bpe.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>

namespace trtmc {
namespace {

// Up to here a search through all pairs beats a queue.
constexpr size_t kMaxShortWord = 48;

// A symbol, and the merge with the one to its right.
struct Symbol {
  uint32_t id;
  uint32_t rank;    // kNoId: none.
  uint32_t result;  // The id after the merge.
};

void find_merge_of(const MergeTable& merges, Symbol& left, uint32_t right) {
  const MergeSlot* merge = merges.find(left.id, right);
  left.rank = merge != nullptr ? merge->rank : kNoId;
  left.result = merge != nullptr ? merge->result : kNoId;
}

// Writes the symbols of the bytes of `word` to `symbols` and returns their number. A byte without a
// symbol is dropped, as `tokenizers` does where the model names no unknown token.
size_t start_symbols(const MergeTable& merges, std::string_view word, Symbol* symbols) {
  size_t count = 0;
  for (const char byte : word) {
    const int32_t id = merges.byte_id(static_cast<unsigned char>(byte));
    if (id < 0) continue;
    symbols[count] = {static_cast<uint32_t>(id), kNoId, kNoId};
    if (count > 0) find_merge_of(merges, symbols[count - 1], symbols[count].id);
    ++count;
  }
  return count;
}

void append_short(const MergeTable& merges, std::string_view word, std::vector<TokenId>& ids,
                  size_t min_symbols) {
  std::array<Symbol, kMaxShortWord> symbols;
  size_t count = start_symbols(merges, word, symbols.data());
  while (count > min_symbols) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (symbols[i].rank < symbols[best].rank) best = i;
    }
    if (symbols[best].rank == kNoId) break;
    symbols[best].id = symbols[best].result;
    std::copy(&symbols[best] + 2, symbols.data() + count, &symbols[best] + 1);
    --count;
    if (best > 0) find_merge_of(merges, symbols[best - 1], symbols[best].id);
    if (best + 1 < count) {
      find_merge_of(merges, symbols[best], symbols[best + 1].id);
    } else {
      symbols[best].rank = kNoId;
    }
  }
  for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<TokenId>(symbols[i].id));
}

// A word of many symbols: the pairs in a queue by rank and place, the symbols in a linked list. An
// entry whose rank is no longer that of its place is out of date.
class LongWord {
 public:
  LongWord(const MergeTable& merges, std::string_view word)
      : merges_(merges), symbols_(word.size()) {
    symbols_.resize(start_symbols(merges, word, symbols_.data()));
    const auto count = static_cast<uint32_t>(symbols_.size());
    previous_.resize(count);
    next_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      previous_[i] = i - 1;  // kNoId for the first.
      next_[i] = i + 1 < count ? i + 1 : kNoId;
      push(i);
    }
  }

  void append_to(std::vector<TokenId>& ids, size_t min_symbols) {
    for (size_t count = symbols_.size(); count > min_symbols && !queue_.empty();) {
      const uint64_t entry = queue_.top();
      queue_.pop();
      const auto place = static_cast<uint32_t>(entry);
      if (symbols_[place].rank != static_cast<uint32_t>(entry >> 32)) continue;
      merge(place);
      --count;
    }
    if (symbols_.empty()) return;
    for (uint32_t i = 0; i != kNoId; i = next_[i]) {
      ids.push_back(static_cast<TokenId>(symbols_[i].id));
    }
  }

 private:
  void push(uint32_t place) {
    const uint32_t rank = symbols_[place].rank;
    if (rank != kNoId) queue_.push(uint64_t{rank} << 32 | place);
  }

  void merge(uint32_t place) {
    const uint32_t gone = next_[place];
    symbols_[place].id = symbols_[place].result;
    symbols_[gone].rank = kNoId;
    next_[place] = next_[gone];
    if (next_[place] != kNoId) previous_[next_[place]] = place;
    update(place);
    if (previous_[place] != kNoId) update(previous_[place]);
  }

  void update(uint32_t place) {
    symbols_[place].rank = kNoId;
    if (next_[place] == kNoId) return;
    find_merge_of(merges_, symbols_[place], symbols_[next_[place]].id);
    push(place);
  }

  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  std::vector<uint32_t> previous_, next_;
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue_;
};

}  // namespace

void append_bpe(const MergeTable& merges, std::string_view word, std::vector<TokenId>& ids,
                size_t min_symbols) {
  if (word.size() <= kMaxShortWord) return append_short(merges, word, ids, min_symbols);
  LongWord(merges, word).append_to(ids, min_symbols);
}

}  // namespace trtmc
