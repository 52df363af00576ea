#include "engine/prefix_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace trtmc {
namespace {

constexpr size_t kFirstNodes = 64;  // A power of two.

uint64_t hash_of(BlockId parent, std::span<const TokenId> tokens) {
  return hash64(std::as_bytes(tokens), static_cast<uint64_t>(parent));
}

}  // namespace

PrefixCache::PrefixCache(KvBlocks& blocks, int block_size)
    : blocks_(blocks), block_size_(static_cast<size_t>(block_size)), buckets_(1, kNone) {}

BlockId PrefixCache::take(BlockId parent, std::span<const TokenId> tokens) {
  const BlockId block = find(parent, tokens, hash_of(parent, tokens));
  if (block != kNone) retain(block);
  return block;
}

BlockId PrefixCache::add(BlockId parent, std::span<const TokenId> tokens, BlockId block) {
  TRTMC_CHECK(!holds(block) && blocks_.references(block) == 1, "a block is added that is shared");
  TRTMC_CHECK(parent == kNone || holds(parent), "a block is added without the one before it");
  const uint64_t hash = hash_of(parent, tokens);
  if (const BlockId known = find(parent, tokens, hash); known != kNone) {
    retain(known);
    blocks_.release(block);
    return known;
  }
  grow(block);
  std::ranges::copy(tokens, tokens_.begin() + static_cast<std::ptrdiff_t>(block) *
                                                  static_cast<std::ptrdiff_t>(block_size_));
  node(block) = {.is_held = true, .parent = parent, .hash = hash};
  link_in_bucket(block);
  blocks_.retain(block);
  return block;
}

void PrefixCache::retain(BlockId block) {
  if (blocks_.references(block) == 1) remove_idle(block);
  blocks_.retain(block);
}

void PrefixCache::release(BlockId block) {
  blocks_.release(block);
  if (holds(block) && blocks_.references(block) == 1) append_idle(block);
}

void PrefixCache::drop(BlockId block) {
  release(block);
  if (!holds(block) || blocks_.references(block) > 1) return;
  const bool is_followed = std::ranges::any_of(
      nodes_, [&](const Node& other) { return other.is_held && other.parent == block; });
  if (!is_followed) evict(block);
}

bool PrefixCache::evict_one() {
  if (oldest_ == kNone) return false;
  evict(oldest_);
  return true;
}

void PrefixCache::evict(BlockId block) {
  remove_idle(block);
  unlink_from_bucket(block);
  node(block).is_held = false;
  blocks_.release(block);
}

bool PrefixCache::holds(BlockId block) const {
  return static_cast<size_t>(block) < nodes_.size() && node(block).is_held;
}

std::span<const TokenId> PrefixCache::tokens(BlockId block) const {
  return std::span(tokens_).subspan(static_cast<size_t>(block) * block_size_, block_size_);
}

std::vector<BlockId> PrefixCache::idle_blocks() const {
  std::vector<BlockId> idle;
  for (BlockId block = oldest_; block != kNone; block = node(block).newer) idle.push_back(block);
  return idle;
}

BlockId PrefixCache::find(BlockId parent, std::span<const TokenId> tokens, uint64_t hash) {
  TRTMC_CHECK(tokens.size() == block_size_, "a block is not full");
  for (BlockId block = bucket(hash); block != kNone; block = node(block).next_in_bucket) {
    const Node& candidate = node(block);
    if (candidate.hash == hash && candidate.parent == parent &&
        std::ranges::equal(this->tokens(block), tokens)) {
      return block;
    }
  }
  return kNone;
}

// Block numbers are handed out from 0 on, so that this follows what has been in use at once.
void PrefixCache::grow(BlockId block) {
  const auto needed = static_cast<size_t>(block) + 1;
  if (needed <= nodes_.size()) return;
  const size_t size = std::max({kFirstNodes, std::bit_ceil(needed)});
  // Whichever finds no memory, everything is as it was.
  std::vector<BlockId> buckets(size, kNone);
  tokens_.resize(size * block_size_);
  nodes_.resize(size);
  buckets_ = std::move(buckets);
  for (BlockId held = 0; static_cast<size_t>(held) < size; ++held) {
    if (node(held).is_held) link_in_bucket(held);
  }
}

void PrefixCache::link_in_bucket(BlockId block) {
  BlockId& first = bucket(node(block).hash);
  node(block).next_in_bucket = first;
  first = block;
}

void PrefixCache::unlink_from_bucket(BlockId block) {
  BlockId* link = &bucket(node(block).hash);
  while (*link != block) link = &node(*link).next_in_bucket;
  *link = node(block).next_in_bucket;
}

void PrefixCache::append_idle(BlockId block) {
  node(block).older = newest_;
  node(block).newer = kNone;
  (newest_ == kNone ? oldest_ : node(newest_).newer) = block;
  newest_ = block;
  ++num_idle_;
}

void PrefixCache::remove_idle(BlockId block) {
  const Node& removed = node(block);
  (removed.older == kNone ? oldest_ : node(removed.older).newer) = removed.newer;
  (removed.newer == kNone ? newest_ : node(removed.newer).older) = removed.older;
  --num_idle_;
}

}  // namespace trtmc
