#include "text/prefix_trie.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.h"

namespace trtmc {
namespace {

constexpr uint32_t kBlock = 256;
// Children of new nodes go to the last blocks only: what is free in older ones is hardly ever
// fitting, and looking there would make the time grow with the square of the nodes.
constexpr size_t kOpenBlocks = 8;

// Entries that begin with the same `depth` bytes, and the node behind those.
struct Branch {
  size_t begin, end;
  size_t depth;
  uint32_t node;
};

class TrieBuilder {
 public:
  explicit TrieBuilder(std::vector<PrefixEntry> entries) : entries_(std::move(entries)) {
    std::sort(entries_.begin(), entries_.end(),
              [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    // In the first block only the root is in use: a node without children has base 0, which leads
    // to nothing there.
    add_block();
    num_free_[0] = 0;
    std::deque<Branch> branches{{0, entries_.size(), 0, 0}};
    for (; !branches.empty(); branches.pop_front()) grow(branches.front(), branches);
  }

  std::vector<PrefixNode> take() { return std::move(nodes_); }

 private:
  // Gives the node of `branch` its token and its children, and queues those.
  void grow(Branch branch, std::deque<Branch>& branches) {
    if (branch.begin < branch.end && entries_[branch.begin].bytes.size() == branch.depth) {
      const PrefixEntry& entry = entries_[branch.begin++];
      nodes_[branch.node].id_and_flags |= entry.id | uint32_t{entry.flags} << 24;
    }
    children_.clear();
    for (size_t i = branch.begin; i < branch.end; ++i) {
      const auto byte = static_cast<unsigned char>(entries_[i].bytes[branch.depth]);
      if (children_.empty() || children_.back().first != byte) children_.emplace_back(byte, i);
    }
    if (children_.empty()) return;
    const uint32_t base = find_base();
    is_base_[base] = true;
    nodes_[branch.node].base_and_byte |= base;
    for (size_t i = 0; i < children_.size(); ++i) {
      const auto [byte, begin] = children_[i];
      const size_t end = i + 1 < children_.size() ? children_[i + 1].second : branch.end;
      nodes_[base ^ byte] = {uint32_t{byte} << 24, uint32_t{kPrefixUsed} << 24};
      branches.push_back({begin, end, branch.depth + 1, base ^ byte});
    }
    num_free_[base / kBlock] -= static_cast<uint32_t>(children_.size());
  }

  // A base whose places for children_ are all free.
  uint32_t find_base() {
    const size_t num_blocks = num_free_.size();
    for (size_t block = num_blocks - std::min(num_blocks, kOpenBlocks); block < num_blocks;
         ++block) {
      if (num_free_[block] < children_.size()) continue;
      const auto begin = static_cast<uint32_t>(block) * kBlock;
      for (uint32_t place = begin; place < begin + kBlock; ++place) {
        const uint32_t base = place ^ children_.front().first;
        if (!is_used(place) && !is_base_[base] && fits(base)) return base;
      }
    }
    add_block();
    return static_cast<uint32_t>(num_blocks) * kBlock;
  }

  bool fits(uint32_t base) const {
    return std::none_of(children_.begin(), children_.end(),
                        [&](const auto& child) { return is_used(base ^ child.first); });
  }

  bool is_used(uint32_t place) const { return (nodes_[place].flags() & kPrefixUsed) != 0; }

  void add_block() {
    if (nodes_.size() + kBlock > kMaxTrieNodes) {
      throw Error(
          ErrorCode::kUnsupported,
          fmt::format("the texts of the tokens make more than {} trie nodes", kMaxTrieNodes));
    }
    nodes_.resize(nodes_.size() + kBlock);
    is_base_.resize(nodes_.size());
    num_free_.push_back(kBlock);
  }

  std::vector<PrefixEntry> entries_;
  std::vector<PrefixNode> nodes_;
  std::vector<bool> is_base_;
  std::vector<uint32_t> num_free_;                    // Of each block.
  std::vector<std::pair<uint8_t, size_t>> children_;  // Of the branch at hand: byte, first entry.
};

}  // namespace

std::vector<PrefixNode> make_prefix_trie(std::vector<PrefixEntry> entries) {
  return TrieBuilder(std::move(entries)).take();
}

}  // namespace trtmc
