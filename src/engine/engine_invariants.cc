#include "engine/engine_invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace trtmc {
namespace {

using Violation = std::optional<std::string>;

Violation check_order(const std::vector<Sequence>& sequences, std::set<SequenceId>& ids) {
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& sequence = sequences[i];
    if (!ids.insert(sequence.id).second) return fmt::format("{} is there twice", sequence.id);
    if (i > 0 && !sequences[i - 1].before(sequence)) {
      return fmt::format("{} is out of order", sequence.id);
    }
  }
  return std::nullopt;
}

// A full block is the one that the cache has for its tokens.
Violation check_full_block(const Sequence& sequence, int index, const EngineSnapshot& snapshot) {
  const auto i = static_cast<size_t>(index);
  const auto place = snapshot.cached.find(sequence.blocks[i]);
  if (place == snapshot.cached.end()) {
    return fmt::format("{} has a full block {} that is not cached", sequence.id,
                       sequence.blocks[i]);
  }
  if (place->second.parent != (i == 0 ? PrefixCache::kNone : sequence.blocks[i - 1])) {
    return fmt::format("block {} of {} follows another one", place->first, sequence.id);
  }
  const std::vector<TokenId>& tokens = place->second.tokens;
  if (!std::equal(tokens.begin(), tokens.end(),
                  sequence.tokens.begin() + static_cast<std::ptrdiff_t>(i * tokens.size()))) {
    return fmt::format("block {} of {} has other tokens", place->first, sequence.id);
  }
  return std::nullopt;
}

Violation check_running(const Sequence& sequence, const EngineSnapshot& snapshot) {
  const int block_size = snapshot.options.limits.block_size;
  const auto capacity = static_cast<int>(sequence.blocks.size()) * block_size;
  if (sequence.computed >= sequence.size()) {
    return fmt::format("{} has nothing left to compute", sequence.id);
  }
  if (sequence.size() >= sequence.max_length + 1) {
    return fmt::format("{} is longer than it may be", sequence.id);
  }
  if (sequence.computed > capacity) {
    return fmt::format("{} has {} tokens in blocks for {}", sequence.id, sequence.computed,
                       capacity);
  }
  const int most = sequence.size() + static_cast<int>(sequence.draft.size());
  if (capacity >= most + block_size) return fmt::format("{} has blocks too many", sequence.id);
  for (int i = 0; i < sequence.computed / block_size; ++i) {
    if (auto violation = check_full_block(sequence, i, snapshot)) return violation;
  }
  // The next token is written into a block of the sequence's own.
  for (auto i = static_cast<size_t>(sequence.computed / block_size); i < sequence.blocks.size();
       ++i) {
    const auto block = static_cast<size_t>(sequence.blocks[i]);
    if (block >= snapshot.references.size()) return fmt::format("there is no block {}", block);
    if (snapshot.references[block] != 1) {
      return fmt::format("{} will write into block {}, which is shared", sequence.id, block);
    }
  }
  return std::nullopt;
}

Violation check_references(const EngineSnapshot& snapshot) {
  std::vector<int> counted(snapshot.references.size());
  for (const Sequence& sequence : snapshot.running) {
    for (const BlockId block : sequence.blocks) {
      if (block < 0 || static_cast<size_t>(block) >= counted.size()) {
        return fmt::format("{} has block {}, which does not exist", sequence.id, block);
      }
      ++counted[static_cast<size_t>(block)];
    }
  }
  for (const auto& [block, cached] : snapshot.cached) ++counted[static_cast<size_t>(block)];
  for (size_t block = 0; block < counted.size(); ++block) {
    if (counted[block] != snapshot.references[block]) {
      return fmt::format("block {} is held {} times but counted {} times", block, counted[block],
                         snapshot.references[block]);
    }
  }
  const auto num_free = std::ranges::count(counted, 0);
  if (num_free != snapshot.num_free) {
    return fmt::format("{} blocks are free but {} are on the list", num_free, snapshot.num_free);
  }
  return std::nullopt;
}

// Who is idle is held by the cache alone, and goes before the block that it follows.
Violation check_cache(const EngineSnapshot& snapshot) {
  std::set<BlockId> idle;
  for (const BlockId block : snapshot.idle) {
    const auto place = snapshot.cached.find(block);
    if (place == snapshot.cached.end() || snapshot.references[static_cast<size_t>(block)] != 1) {
      return fmt::format("block {} is called idle and is not", block);
    }
    if (idle.contains(place->second.parent)) {
      return fmt::format("block {} would go after the one that it follows", block);
    }
    idle.insert(block);
  }
  if (!snapshot.options.keeps_blocks && !idle.empty()) return "blocks are kept, and should not be";
  for (const auto& [block, cached] : snapshot.cached) {
    if (cached.parent != PrefixCache::kNone && !snapshot.cached.contains(cached.parent)) {
      return fmt::format("block {} follows one that is not cached", block);
    }
    if (snapshot.references[static_cast<size_t>(block)] == 1 && !idle.contains(block)) {
      return fmt::format("block {} is idle and can't be freed", block);
    }
  }
  return std::nullopt;
}

Violation check_row(const PlanRow& row, const EngineSnapshot& after) {
  const auto place = std::ranges::find(after.running, row.sequence, &Sequence::id);
  if (place == after.running.end()) return fmt::format("{} does not run", row.sequence);
  const Sequence& sequence = *place;
  if (row.start != sequence.computed) return fmt::format("{} starts elsewhere", row.sequence);
  const int known = row.num_known();
  if (known < 1 || row.start + known > sequence.size()) {
    return fmt::format("{} has {} tokens planned that it has not", row.sequence, known);
  }
  if (row.samples != (row.start + known == sequence.size())) {
    return fmt::format("{} samples without its last token or the other way round", row.sequence);
  }
  if (row.num_drafts < 0 || row.num_drafts > static_cast<int>(sequence.draft.size())) {
    return fmt::format("{} has {} drafts planned that it has not", row.sequence, row.num_drafts);
  }
  if (row.num_drafts > 0 && !row.samples) return fmt::format("{} skips to drafts", row.sequence);
  if (row.logits_from < 0 || row.logits_from > (row.samples ? known - 1 : row.count)) {
    return fmt::format("{} has logits of the wrong tokens", row.sequence);
  }
  if (row.start + row.count > sequence.max_length - 1) {
    return fmt::format("{} is computed beyond its end", row.sequence);
  }
  const int block_size = after.options.limits.block_size;
  if (static_cast<int>(sequence.blocks.size()) * block_size < row.start + row.count) {
    return fmt::format("{} has no blocks for what is planned", row.sequence);
  }
  return std::nullopt;
}

}  // namespace

EngineSnapshot take_snapshot(const Scheduler& scheduler) {
  EngineSnapshot snapshot{.options = scheduler.options(),
                          .running = {},
                          .waiting = {},
                          .references = {},
                          .cached = {},
                          .idle = scheduler.cache().idle_blocks(),
                          .num_free = scheduler.blocks().num_free()};
  for (const auto& sequence : scheduler.running()) snapshot.running.push_back(*sequence);
  for (const auto& sequence : scheduler.waiting()) snapshot.waiting.push_back(*sequence);
  for (BlockId block = 0; block < scheduler.blocks().num_blocks(); ++block) {
    snapshot.references.push_back(scheduler.blocks().references(block));
    const PrefixCache& cache = scheduler.cache();
    if (!cache.holds(block)) continue;
    const auto tokens = cache.tokens(block);
    snapshot.cached[block] = {cache.parent(block), {tokens.begin(), tokens.end()}};
  }
  return snapshot;
}

Violation find_violation(const EngineSnapshot& snapshot) {
  std::set<SequenceId> ids;
  if (auto violation = check_order(snapshot.running, ids)) return violation;
  if (auto violation = check_order(snapshot.waiting, ids)) return violation;
  if (auto violation = check_references(snapshot)) return violation;
  if (auto violation = check_cache(snapshot)) return violation;
  for (const Sequence& sequence : snapshot.running) {
    if (auto violation = check_running(sequence, snapshot)) return violation;
  }
  for (const Sequence& sequence : snapshot.waiting) {
    if (!sequence.blocks.empty() || sequence.computed != 0) {
      return fmt::format("{} waits and holds blocks", sequence.id);
    }
  }
  return std::nullopt;
}

Violation find_violation(const StepPlan& plan, const EngineSnapshot& after) {
  const Limits& limits = after.options.limits;
  std::set<SequenceId> ids;
  int tokens = 0;
  for (const PlanRow& row : plan.rows) {
    if (!ids.insert(row.sequence).second) return fmt::format("{} has two rows", row.sequence);
    if (auto violation = check_row(row, after)) return violation;
    tokens += row.count;
  }
  if (tokens > limits.max_tokens_per_step) return fmt::format("{} tokens in a step", tokens);
  if (static_cast<int>(plan.rows.size()) > limits.max_sequences_per_step) {
    return fmt::format("{} sequences in a step", plan.rows.size());
  }
  if (plan.rows.empty() && !(after.running.empty() && after.waiting.empty())) {
    return "there is work, but none is planned";
  }
  for (const BlockCopy& copy : plan.copies) {
    const auto place = std::ranges::find(after.running, copy.sequence, &Sequence::id);
    if (place == after.running.end() || std::ranges::count(place->blocks, copy.to) != 1) {
      return fmt::format("block {} is copied for nobody", copy.to);
    }
  }
  return std::nullopt;
}

}  // namespace trtmc
