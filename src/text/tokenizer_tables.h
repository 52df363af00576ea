// The flat tables of a tokenizer, as they lie in a bundle: their bytes, a view that has
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
#include "text/merge_table.h"
#include "text/prefix_trie.h"
#include "text/pretokenizer.h"

namespace trtmc {

static_assert(std::endian::native == std::endian::little, "the tables are little-endian");

inline constexpr std::array<char, 8> kTablesMagic = {'T', 'R', 'T', 'M', 'C', 'T', 'O', 'K'};
inline constexpr uint32_t kTablesVersion = 2;

inline constexpr size_t kMaxIds = size_t{1} << 24;
inline constexpr size_t kMaxMerges = size_t{1} << 25;
inline constexpr size_t kMaxAddedLength = 4096;  // Bytes of an added token's text.
inline constexpr size_t kMaxSteps = 32;
inline constexpr size_t kMaxPatternLength = 16384;
inline constexpr uint32_t kMaxProbes = 1024;
inline constexpr uint32_t kMaxMatch = 1024;  // Bytes of a merged token, for words by matching.

// Sections in the order of the file; the comment gives the record.
enum class TablesSection : uint32_t {
  kTokenOffsets,    // uint32_t[num_ids + 1] into kTokenBytes
  kTokenBytes,      // What each token stands for, end to end
  kTokenFlags,      // uint8_t[num_ids] of TokenFlag
  kPrefixNodes,     // PrefixNode, of the bytes of the tokens
  kMergeFilter,     // uint64_t, a Bloom filter in front of kMergeSlots
  kMergeSlots,      // MergeSlot, hash table from two ids to what they merge into
  kTokenParts,      // TokenParts[num_ids], what each token is merged from
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
};

struct SectionRange {
  uint64_t offset;  // From the start of the tables, a multiple of 8.
  uint64_t size;    // In bytes.
};

struct TablesHeader {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t num_ids;
  uint32_t merge_probes;   // Slots that a search in kMergeSlots looks at, at most.
  uint32_t longest_match;  // See TokenizerTables::longest_match.
  std::array<SectionRange, static_cast<size_t>(TablesSection::kCount)> sections;
  std::array<int32_t, 256> byte_ids;  // The id of each byte as a symbol of the model; -1: dropped.
};

// The last merge on the way from a token's bytes to the token.
struct TokenParts {
  uint32_t left, right;
  uint32_t order;  // One more than the highest rank on the way; 0: no merge leads to the token.
};

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

static_assert(sizeof(TablesHeader) == 24 + 13 * 16 + 1024);
static_assert(sizeof(TokenParts) == 12 && sizeof(StepRecord) == 20);
static_assert(sizeof(AddedRecord) == 8 && sizeof(TrieNode) == 12);

// The checked view. Borrows the bytes; stays where it is.
class TokenizerTables {
 public:
  // Looks at every record once, so that nothing that the members return can lead outside the
  // tables. Throws kCorrupt, or kUnsupported for another version.
  explicit TokenizerTables(std::span<const std::byte> bytes);
  TokenizerTables(const TokenizerTables&) = delete;  // merges_ refers to header_.
  TokenizerTables& operator=(const TokenizerTables&) = delete;

  uint32_t num_ids() const { return header_.num_ids; }
  std::string_view token_bytes(uint32_t id) const {
    return {token_bytes_ + token_offsets_[id], token_offsets_[id + 1] - token_offsets_[id]};
  }
  uint8_t token_flags(uint32_t id) const { return token_flags_[id]; }

  // The id of the token with these bytes that is raw, or that is not; or kNoId.
  uint32_t find_token(std::string_view bytes, bool raw) const;
  const PrefixTrie& prefixes() const { return prefixes_; }
  const MergeTable& merges() const { return merges_; }
  const TokenParts& parts(uint32_t id) const { return parts_[id]; }
  // Bytes of the longest token that merges lead to; 0 if matching is no way to find the tokens of
  // a word (see word_encoder.h).
  uint32_t longest_match() const { return header_.longest_match; }

  std::vector<PretokenizerStep> steps() const;
  std::span<const AddedRecord> added_tokens() const { return added_; }
  std::span<const TrieNode> trie() const { return trie_; }
  std::span<const TokenId> template_prefix() const { return prefix_; }
  std::span<const TokenId> template_suffix() const { return suffix_; }

 private:
  template <typename Record>
  std::span<const Record> section(TablesSection which) const;
  void check_tokens() const;
  void read_prefixes();
  void read_merges();
  void check_steps() const;
  void check_added() const;

  std::span<const std::byte> bytes_;
  TablesHeader header_;
  std::span<const uint32_t> token_offsets_;
  const char* token_bytes_ = nullptr;
  std::span<const uint8_t> token_flags_;
  PrefixTrie prefixes_;
  MergeTable merges_;
  std::span<const TokenParts> parts_;
  std::span<const StepRecord> steps_;
  std::string_view step_text_;
  std::span<const AddedRecord> added_;
  std::span<const TrieNode> trie_;
  std::span<const TokenId> prefix_, suffix_;
};

}  // namespace trtmc
