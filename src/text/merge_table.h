// The merges of a byte-level BPE model as a hash table, and its symbols. Private to text/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace trtmc {

inline constexpr uint32_t kNoId = 0xFFFFFFFF;

struct MergeSlot {
  uint32_t left, right;
  uint32_t rank;    // Lower merges first; kNoId: free.
  uint32_t result;  // The id of the merged token.
};
static_assert(sizeof(MergeSlot) == 16);

inline uint64_t mix_hash(uint64_t value) {
  value *= 0x9E3779B97F4A7C15u;
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93u;
  return value ^ (value >> 32);
}

inline uint64_t hash_pair(uint32_t left, uint32_t right) {
  return mix_hash(uint64_t{left} << 32 | right);
}

// Where a search begins among a power of two of slots.
inline size_t first_slot(uint64_t hash, size_t num_slots) {
  return static_cast<size_t>(hash >> 32) & (num_slots - 1);
}

// The bits that a pair with this hash has set in its word of the filter.
inline uint64_t merge_filter_bits(uint64_t hash) {
  return uint64_t{1} << (hash & 63) | uint64_t{1} << (hash >> 6 & 63) |
         uint64_t{1} << (hash >> 12 & 63);
}

// Borrows what it is made from.
class MergeTable {
 public:
  MergeTable() = default;
  // `filter` and `slots`: powers of two of them. `max_probes`: slots that a search looks at.
  // `byte_ids`: the symbol of each byte, or -1.
  MergeTable(std::span<const uint64_t> filter, std::span<const MergeSlot> slots,
             uint32_t max_probes, std::span<const int32_t, 256> byte_ids)
      : filter_(filter), slots_(slots), max_probes_(max_probes), byte_ids_(byte_ids.data()) {}

  // What `left` and `right` merge into, or null. Most pairs that a text asks for do not merge, and
  // the filter knows that of nearly all of them without a look at the slots, which fit no cache.
  const MergeSlot* find(uint32_t left, uint32_t right) const {
    const uint64_t hash = hash_pair(left, right);
    const uint64_t bits = merge_filter_bits(hash);
    if ((filter_[first_slot(hash, filter_.size())] & bits) != bits) return nullptr;
    return find_slot(hash, left, right);
  }

  // All, the free ones too.
  std::span<const MergeSlot> slots() const { return slots_; }
  // The symbol of one byte, or -1.
  int32_t byte_id(unsigned char byte) const { return byte_ids_[byte]; }
  // Whether every byte has one.
  bool has_all_bytes() const {
    return std::none_of(byte_ids_, byte_ids_ + 256, [](int32_t id) { return id < 0; });
  }

 private:
  const MergeSlot* find_slot(uint64_t hash, uint32_t left, uint32_t right) const {
    const size_t start = first_slot(hash, slots_.size());
    for (size_t probe = 0; probe < max_probes_; ++probe) {
      const MergeSlot& slot = slots_[(start + probe) & (slots_.size() - 1)];
      if (slot.rank == kNoId) break;
      if (slot.left == left && slot.right == right) return &slot;
    }
    return nullptr;
  }

  std::span<const uint64_t> filter_;
  std::span<const MergeSlot> slots_;
  uint32_t max_probes_ = 0;
  const int32_t* byte_ids_ = nullptr;  // [256]
};

}  // namespace trtmc
