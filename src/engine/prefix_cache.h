// Which KV blocks hold the keys and values of which tokens, so that a sequence that begins like an
// earlier one shares its blocks instead of computing them again. Used by the engine thread only.
//
// Only full blocks are here; nobody writes into one any more. What a block holds follows from its
// own tokens and from all those before them, so a block is known by the block before it and by its
// tokens, which are compared one by one: the hash over both only says where to look. As the block
// before is known in the same way, equal blocks have equal prefixes, and no collision can give a
// sequence the keys of another. A cache is of one executor, hence of one bundle without adapters;
// an adapter would be a root of its own beside kNone.
//
// The cache holds one reference of each of its blocks. One that nobody else holds is idle: it stays
// until room is needed. Sequences give their blocks back last block first, and a sequence that
// holds a block holds all before it; so idle blocks in the order in which they became idle have
// every block before the one that it follows, and the first of them can always go.
#pragma once

#include <span>
#include <vector>

#include "engine/kv_blocks.h"

namespace trtmc {

class PrefixCache {
 public:
  static constexpr BlockId kNone = -1;

  // `blocks` must outlive it.
  PrefixCache(KvBlocks& blocks, int block_size);

  // The block of these tokens after block `parent` (kNone: at the beginning) with one more
  // reference, the caller's; or kNone. tokens: [block_size].
  BlockId take(BlockId parent, std::span<const TokenId> tokens);

  // The block that stands for these tokens from now on: `block`, of which the caller has the only
  // reference, or the one that does already. The caller's reference is then of that one. The caller
  // holds `parent` too.
  BlockId add(BlockId parent, std::span<const TokenId> tokens, BlockId block);

  // Gives a reference back that came from here or from `blocks`.
  void release(BlockId block);

  // The same of a block in which something is wrong: unless others hold it or one that follows it,
  // nobody will find it any more. Takes a look at every block.
  void drop(BlockId block);

  // Frees the block that has been idle longest. False if none is.
  bool evict_one();

  int num_idle() const { return num_idle_; }

  // For the invariants. Of a block that is here: parent and tokens.
  bool holds(BlockId block) const;
  BlockId parent(BlockId block) const { return node(block).parent; }
  std::span<const TokenId> tokens(BlockId block) const;
  std::vector<BlockId> idle_blocks() const;  // The first to go first.

 private:
  struct Node {
    bool is_held = false;  // By the cache.
    BlockId parent = kNone;
    uint64_t hash = 0;
    BlockId next_in_bucket = kNone;
    BlockId older = kNone, newer = kNone;  // Neighbours among the idle.
  };

  Node& node(BlockId block) { return nodes_[static_cast<size_t>(block)]; }
  const Node& node(BlockId block) const { return nodes_[static_cast<size_t>(block)]; }
  BlockId& bucket(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  BlockId find(BlockId parent, std::span<const TokenId> tokens, uint64_t hash);
  void retain(BlockId block);
  void evict(BlockId block);  // One that is idle.
  void grow(BlockId block);
  void link_in_bucket(BlockId block);
  void unlink_from_bucket(BlockId block);
  void append_idle(BlockId block);
  void remove_idle(BlockId block);

  KvBlocks& blocks_;
  const size_t block_size_;
  std::vector<Node> nodes_;       // By block; as many as have been seen.
  std::vector<TokenId> tokens_;   // [nodes, block_size]
  std::vector<BlockId> buckets_;  // The first of each chain; a power of two.
  BlockId oldest_ = kNone, newest_ = kNone;
  int num_idle_ = 0;
};

}  // namespace trtmc
