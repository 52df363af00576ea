// The bytes of all tokens as a trie, in one array: a step along a text is one load. Private to
// text/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trtmc {

inline constexpr uint32_t kMaxTrieNodes = 1 << 24;

enum PrefixFlag : uint8_t {
  kPrefixUsed = 1,    // There is a node here.
  kPrefixToken = 2,   // A token ends here.
  kPrefixWhole = 4,   // A word that ends here becomes this one token.
  kPrefixMerged = 8,  // Merging the bytes up to here leads to this one token.
};

// Node 0 is the root. The child of a node for a byte is at base xor byte, if the node there is in
// use for that byte: no two nodes with children have the same base.
struct PrefixNode {
  uint32_t base_and_byte;  // The base below 2^24, then the byte that leads here.
  uint32_t id_and_flags;   // The token's id below 2^24, then PrefixFlags.

  uint32_t base() const { return base_and_byte & 0xFFFFFF; }
  uint8_t byte() const { return static_cast<uint8_t>(base_and_byte >> 24); }
  uint32_t id() const { return id_and_flags & 0xFFFFFF; }
  uint8_t flags() const { return static_cast<uint8_t>(id_and_flags >> 24); }
};
static_assert(sizeof(PrefixNode) == 8);

// Borrows its nodes: whole blocks of 256, every base within them.
class PrefixTrie {
 public:
  PrefixTrie() = default;
  explicit PrefixTrie(std::span<const PrefixNode> nodes) : nodes_(nodes) {}

  // Shows `visit` the node behind each byte of `text` and how many bytes it took, as far as the
  // trie goes.
  template <typename Visit>
  void walk(std::string_view text, Visit visit) const {
    uint32_t base = nodes_[0].base();
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const PrefixNode node = nodes_[base ^ byte];
      if (node.byte() != byte || (node.flags() & kPrefixUsed) == 0) return;
      visit(node, i + 1);
      base = node.base();
    }
  }

 private:
  std::span<const PrefixNode> nodes_;
};

struct PrefixEntry {
  std::string_view bytes;  // Not empty, and no other entry's.
  uint32_t id;
  uint8_t flags;  // PrefixFlags, without kPrefixUsed.
};

// Throws kUnsupported if there are too many nodes. Deterministic.
std::vector<PrefixNode> make_prefix_trie(std::vector<PrefixEntry> entries);

}  // namespace trtmc
