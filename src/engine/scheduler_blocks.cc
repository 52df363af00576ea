// The half of the scheduler that deals with blocks: who gets them, shares them, gives them up.
#include <algorithm>
#include <utility>

#include "engine/scheduler.h"

namespace trtmc {

std::optional<BlockId> Scheduler::try_allocate() {
  if (blocks_.num_free() == 0) cache_.evict_one();
  return blocks_.try_allocate();
}

// False if there are not as many blocks; then the sequence has all that there are.
bool Scheduler::grow_to(Sequence& sequence, int num_blocks) {
  while (static_cast<int>(sequence.blocks.size()) < num_blocks) {
    const auto block = try_allocate();
    if (!block) return false;
    sequence.blocks.push_back(*block);
  }
  return true;
}

// Blocks for all the sequence's tokens. False if the sequence itself had to give way.
bool Scheduler::make_room_for_known(Sequence& sequence) {
  while (!grow_to(sequence, blocks_for(sequence.size()))) {
    const bool itself = running_.back().get() == &sequence;
    preempt_last();
    if (itself) return false;
  }
  return true;
}

// Those who run and make room for this sequence to start: the last in order.
std::span<const std::unique_ptr<Sequence>> Scheduler::giving_way_to(
    const Sequence& sequence) const {
  size_t first = running_.size();
  while (first > 0 && running_[first - 1]->priority < sequence.priority &&
         sequence.before(*running_[first - 1])) {
    --first;
  }
  return std::span(running_).subspan(first);
}

// Blocks that nobody else holds.
int Scheduler::num_blocks_given_up(std::span<const std::unique_ptr<Sequence>> sequences) {
  for (const auto& sequence : sequences) {
    for (const BlockId block : sequence->blocks) ++holders_[static_cast<size_t>(block)];
  }
  int count = 0;
  for (const auto& sequence : sequences) {
    for (const BlockId block : sequence->blocks) {
      const int held = std::exchange(holders_[static_cast<size_t>(block)], 0);
      if (held > 0 && held + (cache_.holds(block) ? 1 : 0) == blocks_.references(block)) ++count;
    }
  }
  return count;
}

void Scheduler::preempt_last() {
  ++num_preemptions_;
  auto sequence = std::move(running_.back());
  running_.pop_back();
  std::erase_if(plan_.rows, [&](const PlanRow& row) {
    if (row.sequence != sequence->id) return false;
    budget_ += row.count;
    return true;
  });
  std::erase_if(plan_.copies, [&](const BlockCopy& c) { return c.sequence == sequence->id; });
  release_blocks_from(*sequence, 0);
  sequence->computed = 0;
  sequence->draft.clear();
  sequence->was_preempted = true;
  sequence->is_planned = false;
  insert_in_order(waiting_, std::move(sequence));
}

// Gives the sequence its blocks. False: not now.
bool Scheduler::try_start(Sequence& sequence, bool may_preempt) {
  if (is_full() && !(may_preempt && !giving_way_to(sequence).empty())) return false;
  // Whoever passes others must find as many free blocks as if nothing were shared: that is known
  // without a look at its tokens.
  const int num_free = blocks_.num_free() + cache_.num_idle();
  if (!may_preempt && blocks_for(sequence.size()) > num_free) return false;
  if (try_to_take_blocks(sequence, may_preempt)) return true;
  release_blocks_from(sequence, 0);
  sequence.computed = 0;
  if (!sequence.was_preempted) sequence.cached = 0;
  return false;
}

// False if there are too few; then it may have got some. Nobody gives way in vain.
bool Scheduler::try_to_take_blocks(Sequence& sequence, bool may_preempt) {
  share_cached(sequence);
  const int num_blocks = blocks_for(sequence.size());
  const auto missing = [&] {
    return num_blocks - static_cast<int>(sequence.blocks.size()) - blocks_.num_free() -
           cache_.num_idle();
  };
  if (missing() > 0 && (!may_preempt || missing() > num_blocks_given_up(giving_way_to(sequence)))) {
    return false;
  }
  while (is_full() || missing() > 0) preempt_last();
  grow_to(sequence, num_blocks);
  copy_from_leader(sequence);
  return true;
}

// How many of the tokens somebody else may have computed: not the last one, which is computed for
// its logits, and none whose logits are wanted.
int Scheduler::most_shared(const Sequence& sequence) const {
  return std::min(sequence.size() - 1, sequence.logits_from);
}

// Takes over blocks that others have computed, as far as they follow each other.
void Scheduler::share_cached(Sequence& sequence) {
  const int block_size = options_.limits.block_size;
  const int before = sequence.computed;
  const int num_shared = most_shared(sequence) / block_size;
  for (int i = sequence.computed / block_size; i < num_shared; ++i) {
    BlockId block = cache_.take(block_before(sequence, i), tokens_of_block(sequence, i));
    if (block == PrefixCache::kNone) break;
    if (i < static_cast<int>(sequence.blocks.size())) {
      std::swap(sequence.blocks[static_cast<size_t>(i)], block);
      release(block);
    } else {
      sequence.blocks.push_back(block);
    }
    sequence.computed = (i + 1) * block_size;
  }
  if (!sequence.was_preempted) sequence.cached += sequence.computed - before;
}

// The leader's full blocks are in the cache; of the one in which this sequence will write it gets a
// copy.
void Scheduler::copy_from_leader(Sequence& sequence) {
  const Sequence* leader = leader_of(sequence);
  if (!leader || !leader->prompt_computed()) return;
  const int block_size = options_.limits.block_size;
  const int shared = std::min(most_shared(sequence), sequence.prompt_size);
  const auto last = static_cast<size_t>(sequence.computed / block_size);
  const int end_of_block = (sequence.computed / block_size + 1) * block_size;
  if (shared <= sequence.computed || shared > end_of_block) return;
  plan_.copies.push_back({sequence.id, leader->blocks[last], sequence.blocks[last]});
  sequence.computed = shared;
}

BlockId Scheduler::block_before(const Sequence& sequence, int index) const {
  return index == 0 ? PrefixCache::kNone : sequence.blocks[static_cast<size_t>(index) - 1];
}

void Scheduler::release(BlockId block) {
  cache_.release(block);
  while (!options_.keeps_blocks && cache_.evict_one()) {
  }
}

// Last block first, as the cache asks for.
void Scheduler::release_blocks_from(Sequence& sequence, int first) {
  while (static_cast<int>(sequence.blocks.size()) > first) {
    release(sequence.blocks.back());
    sequence.blocks.pop_back();
  }
}

}  // namespace trtmc
