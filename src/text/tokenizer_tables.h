// The flat tables of a tokenizer, used in place from a mapped bundle: their bytes, a view that has
// checked them, and what they are made from. docs/tokenizer_tables.md is the normative description.
// Private to text/.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/pretokenizer.h"

namespace trtmc {

static_assert(std::endian::native == std::endian::little, "the tables are little-endian");

inline constexpr std::array<char, 8> kTablesMagic = {'T', 'R', 'T', 'M', 'C', 'T', 'O', 'K'};
inline constexpr uint32_t kTablesVersion = 1;

inline constexpr size_t kMaxIds = size_t{1} << 24;
inline constexpr size_t kMaxMerges = size_t{1} << 25;
inline constexpr size_t kMaxAddedLength = 4096;  // Bytes of an added token's text.
inline constexpr size_t kMaxSteps = 32;
inline constexpr size_t kMaxPatternLength = 16384;
inline constexpr uint32_t kMaxProbes = 1024;

// Sections in the order of the file; the comment gives the record.
enum class TablesSection : uint32_t {
  kTokenOffsets,    // uint32_t[num_ids + 1] into kTokenBytes
  kTokenBytes,      // What each token stands for, end to end
  kTokenFlags,      // uint8_t[num_ids] of TokenFlag
  kTextSlots,       // TextSlot, hash table from a token's bytes to its id
  kMergeSlots,      // MergeSlot, hash table from two ids to what they merge into
  kSteps,           // StepRecord
  kStepText,        // The patterns of the steps
  kAddedTokens,     // AddedRecord
  kTrieNodes,       // TrieNode, of the texts of the added tokens
  kTemplatePrefix,  // int32_t ids in front of a text with add_special
  kTemplateSuffix,  // int32_t ids behind it
  kCount
};

enum TokenFlag : uint8_t {
  kTokenSpecial = 1,     // Skipped by decode(…, skip_special).
  kTokenOutOfModel = 2,  // An added token that the model's own vocabulary lacks.
  kTokenRaw = 4,         // Its text is not of the byte alphabet and stands for itself.
  kTokenWhole = 8,       // A word of just these bytes becomes this one token.
};

struct SectionRange {
  uint64_t offset;  // From the start of the tables, a multiple of 8.
  uint64_t size;    // In bytes.
};

struct TablesHeader {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t num_ids;
  uint32_t text_probes;   // Slots that a search in kTextSlots looks at, at most.
  uint32_t merge_probes;  // The same for kMergeSlots.
  std::array<SectionRange, static_cast<size_t>(TablesSection::kCount)> sections;
  std::array<int32_t, 256> byte_ids;  // The id of each byte as a symbol of the model; -1: dropped.
};

// The slot of a key is the upper bits of its hash; after it come the next ones, cyclically.
struct TextSlot {
  uint32_t tag;  // The lower half of the hash.
  uint32_t id;   // kNoId: free.
};

struct MergeSlot {
  uint32_t left, right;
  uint32_t rank;    // Lower merges first; kNoId: free.
  uint32_t result;  // The id of the merged token.
};

inline constexpr uint32_t kNoId = 0xFFFFFFFF;

struct StepRecord {
  uint32_t kind, behavior;
  uint32_t flags;  // StepFlag
  uint32_t text_offset, text_size;
};

enum StepFlag : uint32_t { kStepInvert = 1, kStepPrefixSpace = 2, kStepUseRegex = 4 };

struct AddedRecord {
  uint32_t id;
  uint32_t flags;  // AddedFlag
};

enum AddedFlag : uint32_t { kAddedSingleWord = 1, kAddedStripLeft = 2, kAddedStripRight = 4 };

// Node 0 is the root for tokens matched in the text as it comes (normalized: false), node 1 for
// those matched in what is left. Children come after their parent, side by side, by byte.
struct TrieNode {
  uint32_t first_child;
  uint16_t num_children;
  uint8_t byte;  // On the way from the parent.
  uint8_t padding;
  uint32_t added;  // The number of the added token that ends here, or kNoId.
};

static_assert(sizeof(TablesHeader) == 24 + 11 * 16 + 1024);
static_assert(sizeof(TextSlot) == 8 && sizeof(MergeSlot) == 16 && sizeof(StepRecord) == 20);
static_assert(sizeof(AddedRecord) == 8 && sizeof(TrieNode) == 12);

inline uint64_t mix_hash(uint64_t value) {
  value *= 0x9E3779B97F4A7C15u;
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93u;
  return value ^ (value >> 32);
}

// Eight bytes at a time, the last ones filled up with zeros, from a start that holds the length.
inline uint64_t hash_text(std::string_view bytes) {
  uint64_t hash = bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = mix_hash(hash ^ word);
  }
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    word |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return mix_hash(hash ^ word);
}

inline uint64_t hash_pair(uint32_t left, uint32_t right) {
  return mix_hash(uint64_t{left} << 32 | right);
}

// Where a search begins among a power of two of slots.
inline size_t first_slot(uint64_t hash, size_t num_slots) {
  return static_cast<size_t>(hash >> 32) & (num_slots - 1);
}

// The checked view. Borrows the bytes.
class TokenizerTables {
 public:
  // Looks at every record once, so that nothing that the members return can lead outside the
  // tables. Throws kCorrupt, or kUnsupported for another version.
  explicit TokenizerTables(std::span<const std::byte> bytes);

  uint32_t num_ids() const { return header_.num_ids; }
  std::string_view token_bytes(uint32_t id) const {
    return {token_bytes_ + token_offsets_[id], token_offsets_[id + 1] - token_offsets_[id]};
  }
  uint8_t token_flags(uint32_t id) const { return token_flags_[id]; }

  // The id of the token with these bytes whose flags, of those in `mask`, are `flags`; or kNoId.
  uint32_t find_token(std::string_view bytes, uint8_t mask, uint8_t flags) const;
  // What `left` and `right` merge into, or null.
  const MergeSlot* find_merge(uint32_t left, uint32_t right) const;
  // The symbol of one byte, or -1.
  int32_t byte_id(unsigned char byte) const { return header_.byte_ids[byte]; }

  std::vector<PretokenizerStep> steps() const;
  std::span<const AddedRecord> added_tokens() const { return added_; }
  std::span<const TrieNode> trie() const { return trie_; }
  std::span<const TokenId> template_prefix() const { return prefix_; }
  std::span<const TokenId> template_suffix() const { return suffix_; }

 private:
  template <typename Record>
  std::span<const Record> section(TablesSection which) const;
  void check_tokens() const;
  void check_merges() const;
  void check_steps() const;
  void check_added() const;

  std::span<const std::byte> bytes_;
  TablesHeader header_;
  std::span<const uint32_t> token_offsets_;
  const char* token_bytes_ = nullptr;
  std::span<const uint8_t> token_flags_;
  std::span<const TextSlot> text_slots_;
  std::span<const MergeSlot> merge_slots_;
  std::span<const StepRecord> steps_;
  std::string_view step_text_;
  std::span<const AddedRecord> added_;
  std::span<const TrieNode> trie_;
  std::span<const TokenId> prefix_, suffix_;
};

}  // namespace trtmc
