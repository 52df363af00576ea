#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/merge_table.h"
#include "text/prefix_trie.h"
#include "text/tokenizer_spec.h"
#include "text/tokenizer_tables.h"

namespace trtmc {
namespace {

// An open-addressing table of `merges`, at most 2/3 full, and its longest search.
std::pair<std::vector<MergeSlot>, uint32_t> make_slots(const std::vector<MergeSlot>& merges) {
  const size_t num_slots = std::bit_ceil(merges.size() + merges.size() / 2 + 1);
  std::vector<MergeSlot> slots(num_slots, {0, 0, kNoId, 0});
  uint32_t longest = 0;
  for (const MergeSlot& merge : merges) {
    size_t at = first_slot(hash_pair(merge.left, merge.right), num_slots);
    uint32_t probes = 1;
    while (slots[at].rank != kNoId) {
      at = (at + 1) & (num_slots - 1);
      if (++probes > kMaxProbes) {
        throw Error(ErrorCode::kInvalidArgument,
                    "merges that collide on purpose: no hash table can hold them");
      }
    }
    slots[at] = merge;
    longest = std::max(longest, probes);
  }
  return {std::move(slots), longest};
}

// The Bloom filter of `merges`: 3 of 64 bits for each, 4 to 8 merges a word.
std::vector<uint64_t> make_filter(const std::vector<MergeSlot>& merges) {
  std::vector<uint64_t> filter(std::bit_floor(merges.size() / 4 + 1));
  for (const MergeSlot& merge : merges) {
    const uint64_t hash = hash_pair(merge.left, merge.right);
    filter[first_slot(hash, filter.size())] |= merge_filter_bits(hash);
  }
  return filter;
}

// The two tries over the texts of the added tokens, node by node in breadth-first order.
std::vector<TrieNode> make_trie(const std::vector<AddedTokenSpec>& added) {
  struct Growing {
    std::map<unsigned char, size_t> children;
    uint32_t added = kNoId;
  };
  std::vector<Growing> growing(2);
  for (size_t i = 0; i < added.size(); ++i) {
    size_t at = added[i].normalized ? 1 : 0;
    for (const char c : added[i].content) {
      const auto [child, is_new] =
          growing[at].children.emplace(static_cast<unsigned char>(c), growing.size());
      at = child->second;
      if (is_new) growing.emplace_back();
    }
    growing[at].added = static_cast<uint32_t>(i);
  }
  std::vector<TrieNode> nodes(2, TrieNode{0, 0, 0, 0, kNoId});
  std::vector<size_t> order{0, 1};  // Of each node of `nodes`, its place in `growing`.
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& children = growing[order[i]].children;
    if (children.empty()) continue;
    nodes[i].first_child = static_cast<uint32_t>(nodes.size());
    nodes[i].num_children = static_cast<uint16_t>(children.size());
    for (const auto& [byte, child] : children) {
      nodes.push_back({0, 0, byte, 0, growing[child].added});
      order.push_back(child);
    }
  }
  return nodes;
}

class TablesWriter {
 public:
  explicit TablesWriter(const TokenizerSpec& spec) : spec_(spec) {
    header_.magic = kTablesMagic;
    header_.version = kTablesVersion;
    bytes_.resize(sizeof(header_));
    add_tokens();
    add_merges();
    add_prefixes();
    add_steps();
    add_added();
    add_section(TablesSection::kTemplatePrefix, spec.prefix);
    add_section(TablesSection::kTemplateSuffix, spec.suffix);
    std::memcpy(bytes_.data(), &header_, sizeof(header_));
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  template <typename Record>
  void add_section(TablesSection which, const std::vector<Record>& records) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    const auto data = std::as_bytes(std::span(records));
    header_.sections[static_cast<size_t>(which)] = {bytes_.size(), data.size()};
    bytes_.insert(bytes_.end(), data.begin(), data.end());
  }

  // What the token `text` stands for: the bytes it spells, or itself.
  void add_token(const std::string& text, uint8_t flags) {
    const auto spelled = bytes_of_alphabet(text);
    token_bytes_ += spelled ? *spelled : text;
    offsets_.push_back(static_cast<uint32_t>(token_bytes_.size()));
    flags_.push_back(static_cast<uint8_t>(flags | (spelled ? 0 : kTokenRaw)));
  }

  void add_tokens() {
    for (const std::string& text : spec_.vocabulary) add_token(text, 0);
    for (const AddedTokenSpec& added : spec_.added) {
      if (static_cast<size_t>(added.id) == flags_.size()) {
        add_token(added.content, kTokenOutOfModel);
      }
      if (added.special) flags_[static_cast<size_t>(added.id)] |= kTokenSpecial;
    }
    header_.num_ids = static_cast<uint32_t>(flags_.size());
    add_section(TablesSection::kTokenOffsets, offsets_);
    add_section(TablesSection::kTokenBytes,
                std::vector<char>(token_bytes_.begin(), token_bytes_.end()));
    add_section(TablesSection::kTokenFlags, flags_);
    fill_byte_ids();
  }

  std::string_view text_of(uint32_t id) const {
    return std::string_view(token_bytes_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }

  void fill_byte_ids() {
    header_.byte_ids.fill(-1);
    for (uint32_t id = 0; id < header_.num_ids; ++id) {
      const bool is_symbol = (flags_[id] & (kTokenRaw | kTokenOutOfModel)) == 0;
      const std::string_view text = text_of(id);
      if (is_symbol && text.size() == 1) {
        header_.byte_ids[static_cast<unsigned char>(text[0])] = static_cast<int32_t>(id);
      }
    }
  }

  void add_merges() {
    std::vector<MergeSlot> entries;
    for (uint32_t rank = 0; rank < spec_.merges.size(); ++rank) {
      const MergeSpec& merge = spec_.merges[rank];
      entries.push_back({static_cast<uint32_t>(merge.left), static_cast<uint32_t>(merge.right),
                         rank, static_cast<uint32_t>(merge.result)});
    }
    const auto pair = [](const MergeSlot& slot) { return std::pair(slot.left, slot.right); };
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const auto& a, const auto& b) { return pair(a) < pair(b); });
    // Of equal pairs the last one stays, as in the map that `tokenizers` collects them in.
    const auto kept = std::unique(entries.rbegin(), entries.rend(),
                                  [&](const auto& a, const auto& b) { return pair(a) == pair(b); });
    entries.erase(entries.begin(), kept.base());
    const std::vector<uint64_t> filter = make_filter(entries);
    const auto [slots, probes] = make_slots(entries);
    header_.merge_probes = probes;
    add_section(TablesSection::kMergeFilter, filter);
    add_section(TablesSection::kMergeSlots, slots);
    find_parts(MergeTable(filter, slots, probes, header_.byte_ids));
    header_.longest_match = longest_match();
    add_section(TablesSection::kTokenParts, parts_);
  }

  // Merges the bytes of each token of the model, to see whether they become the token and of what.
  // Parts are shorter, so they come first.
  void find_parts(const MergeTable& merges) {
    std::vector<uint32_t> by_size;
    for (uint32_t id = 0; id < header_.num_ids; ++id) {
      if ((flags_[id] & (kTokenRaw | kTokenOutOfModel)) == 0) by_size.push_back(id);
    }
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](uint32_t a, uint32_t b) { return text_of(a).size() < text_of(b).size(); });
    parts_.resize(header_.num_ids);
    is_merged_.resize(header_.num_ids);
    std::vector<TokenId> ids;
    for (const uint32_t id : by_size) {
      ids.clear();
      append_bpe(merges, text_of(id), ids, 2);
      if (ids.size() == 1) is_merged_[id] = static_cast<uint32_t>(ids[0]) == id;
      if (ids.size() != 2) continue;
      const auto left = static_cast<uint32_t>(ids[0]), right = static_cast<uint32_t>(ids[1]);
      const MergeSlot* last = merges.find(left, right);
      if (last == nullptr || last->result != id) continue;
      is_merged_[id] = true;
      parts_[id] = {left, right,
                    std::max({parts_[left].order, parts_[right].order, last->rank + 1})};
    }
  }

  uint32_t longest_match() const {
    if (std::count(header_.byte_ids.begin(), header_.byte_ids.end(), -1) != 0) return 0;
    size_t longest = 0;
    for (uint32_t id = 0; id < header_.num_ids; ++id) {
      if (is_merged_[id]) longest = std::max(longest, text_of(id).size());
    }
    return longest <= kMaxMatch ? static_cast<uint32_t>(longest) : 0;
  }

  void add_prefixes() {
    std::vector<PrefixEntry> entries;
    for (uint32_t id = 0; id < header_.num_ids; ++id) {
      if ((flags_[id] & kTokenRaw) != 0 || text_of(id).empty()) continue;
      const bool in_model = (flags_[id] & kTokenOutOfModel) == 0;
      const bool is_whole = in_model && (spec_.ignore_merges || is_merged_[id]);
      entries.push_back({text_of(id), id,
                         static_cast<uint8_t>(kPrefixToken | (is_whole ? kPrefixWhole : 0) |
                                              (is_merged_[id] ? kPrefixMerged : 0))});
    }
    add_section(TablesSection::kPrefixNodes, make_prefix_trie(std::move(entries)));
  }

  void add_steps() {
    std::vector<StepRecord> records;
    std::vector<char> text;
    for (const PretokenizerStep& step : spec_.steps) {
      const uint32_t flags = (step.invert ? kStepInvert : 0u) |
                             (step.add_prefix_space ? kStepPrefixSpace : 0u) |
                             (step.use_regex ? kStepUseRegex : 0u);
      records.push_back({static_cast<uint32_t>(step.kind), static_cast<uint32_t>(step.behavior),
                         flags, static_cast<uint32_t>(text.size()),
                         static_cast<uint32_t>(step.pattern.size())});
      text.insert(text.end(), step.pattern.begin(), step.pattern.end());
    }
    add_section(TablesSection::kSteps, records);
    add_section(TablesSection::kStepText, text);
  }

  void add_added() {
    std::vector<AddedRecord> records;
    for (const AddedTokenSpec& added : spec_.added) {
      records.push_back(
          {static_cast<uint32_t>(added.id), (added.single_word ? kAddedSingleWord : 0u) |
                                                (added.lstrip ? kAddedStripLeft : 0u) |
                                                (added.rstrip ? kAddedStripRight : 0u)});
    }
    add_section(TablesSection::kAddedTokens, records);
    add_section(TablesSection::kTrieNodes, make_trie(spec_.added));
  }

  const TokenizerSpec& spec_;
  TablesHeader header_{};
  std::vector<std::byte> bytes_;
  std::vector<uint32_t> offsets_{0};
  std::string token_bytes_;
  std::vector<uint8_t> flags_;
  std::vector<TokenParts> parts_;
  std::vector<bool> is_merged_;  // Of each id: its bytes merge to it.
};

}  // namespace

std::vector<std::byte> write_tokenizer_tables(const TokenizerSpec& spec) {
  return TablesWriter(spec).take();
}

}  // namespace trtmc
