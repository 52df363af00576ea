#include "engine/scheduler.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace trtmc {
namespace {

void insert_in_order(Scheduler::Sequences& sequences, std::unique_ptr<Sequence> sequence) {
  const auto place =
      std::ranges::find_if(sequences, [&](const auto& other) { return sequence->before(*other); });
  sequences.insert(place, std::move(sequence));
}

std::unique_ptr<Sequence> take_from(Scheduler::Sequences& sequences, SequenceId id) {
  const auto place =
      std::ranges::find_if(sequences, [&](const auto& other) { return other->id == id; });
  if (place == sequences.end()) return nullptr;
  auto sequence = std::move(*place);
  sequences.erase(place);
  return sequence;
}

template <typename T>
void make_room(std::vector<T>& list, size_t size) {
  if (list.capacity() < size) list.reserve(std::max(size, 2 * list.capacity()));
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options),
      blocks_(options.limits.num_blocks),
      cache_(blocks_, options.limits.block_size) {
  TRTMC_CHECK(options.limits.block_size > 0 && options.limits.max_tokens_per_step > 0 &&
                  options.limits.max_sequences_per_step > 0,
              "a step without room");
}

int Scheduler::blocks_for(int tokens) const {
  return (tokens + options_.limits.block_size - 1) / options_.limits.block_size;
}

// As many as a step can give a token each.
size_t Scheduler::most_running() const {
  return static_cast<size_t>(
      std::min(options_.limits.max_sequences_per_step, options_.limits.max_tokens_per_step));
}

std::span<const TokenId> Scheduler::tokens_of_block(const Sequence& sequence, int index) const {
  const auto size = static_cast<size_t>(options_.limits.block_size);
  return std::span(sequence.tokens).subspan(static_cast<size_t>(index) * size, size);
}

Admission Scheduler::admit(std::unique_ptr<Sequence> sequence) {
  TRTMC_CHECK(!sequence->tokens.empty() && sequence->prompt_size == sequence->size(),
              "a sequence starts with its prompt");
  TRTMC_CHECK(!find(sequence->id), "two sequences with one id");
  // The last token's keys and values are never needed.
  const int most_computed = sequence->max_length - 1;
  if (sequence->prompt_size > most_computed || blocks_for(most_computed) > blocks_.num_blocks()) {
    return Admission::kTooLong;
  }
  if (static_cast<int>(waiting_.size()) >= options_.max_waiting) return Admission::kQueueFull;
  sequence->turn = num_plans_ - static_cast<int64_t>(sequence->priority) * kPriorityLeadSteps;
  sequence->blocks.reserve(static_cast<size_t>(blocks_for(most_computed)));
  make_room_to_plan();
  by_id_.emplace(sequence->id, sequence.get());
  insert_in_order(waiting_, std::move(sequence));
  return Admission::kAdmitted;
}

// For one more sequence. One that runs may have to wait again.
void Scheduler::make_room_to_plan() {
  const size_t num_sequences = running_.size() + waiting_.size() + 1;
  make_room(waiting_, num_sequences);
  const size_t num_running = std::min(num_sequences, most_running());
  make_room(running_, num_running);
  make_room(plan_.copies, num_running);
  make_room(plan_.rows, num_running);
  make_room(readers_, num_running);
  make_room(by_urgency_, num_running);
}

const Sequence* Scheduler::find(SequenceId id) const {
  const auto place = by_id_.find(id);
  return place == by_id_.end() ? nullptr : place->second;
}

void Scheduler::propose(SequenceId id, std::span<const TokenId> draft) {
  const auto place = by_id_.find(id);
  if (place == by_id_.end() || place->second->blocks.empty()) return;  // It does not run.
  place->second->draft.assign(draft.begin(), draft.end());
}

const StepPlan& Scheduler::plan() {
  ++num_plans_;
  plan_.copies.clear();
  plan_.rows.clear();
  budget_ = options_.limits.max_tokens_per_step;
  for (const auto& sequence : running_) sequence->is_planned = false;
  plan_generating();
  start_waiting();
  plan_prompts();
  plan_drafts();
  return plan_;
}

// First, since somebody is reading them.
void Scheduler::plan_generating() {
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.num_uncomputed() == 1 && make_room_for_known(sequence)) add_row(sequence, 1);
  }
}

void Scheduler::start_waiting() {
  while (Sequence* next = next_waiting()) {
    if (!try_start(*next)) {
      release_blocks_from(*next, 0);
      next->computed = 0;
      if (!next->was_preempted) next->cached = 0;
      return;
    }
    insert_in_order(running_, take_from(waiting_, next->id));
  }
}

// Half of the budget that is left is for the first in order, so that nobody waits for ever; the
// rest goes by priority and then to the shortest, so that a short prompt is not held up by a long
// one.
void Scheduler::plan_prompts() {
  readers_.clear();
  for (const auto& sequence : running_) {
    if (sequence->is_planned) continue;
    share_cached(*sequence);
    readers_.push_back({sequence.get(), 0});
  }
  if (readers_.empty()) return;
  deal_to_readers();
  for (const Reader& reader : readers_) {
    if (reader.num_tokens > 0) add_row(*reader.sequence, reader.num_tokens);
  }
}

void Scheduler::deal_to_readers() {
  int left = budget_;
  const auto give = [&](Reader& reader, int most) {
    const int wanted = longest_row(*reader.sequence) - reader.num_tokens;
    const int given = std::min({wanted, most, left});
    reader.num_tokens += given;
    left -= given;
  };
  give(readers_.front(), (budget_ + 1) / 2);
  by_urgency_.clear();
  for (Reader& reader : readers_) by_urgency_.push_back(&reader);
  std::ranges::sort(by_urgency_, {}, [](const Reader* reader) {
    const Sequence& sequence = *reader->sequence;
    return std::tuple(-static_cast<int>(sequence.priority), sequence.num_uncomputed(),
                      sequence.turn, sequence.id);
  });
  for (Reader* reader : by_urgency_) give(*reader, left);
}

// All the tokens that are left, unless the logits of some are wanted besides the last one's.
int Scheduler::longest_row(const Sequence& sequence) const {
  const int all = sequence.num_uncomputed();
  if (sequence.logits_from >= sequence.size() - 1) return all;
  const int to_first_logits = sequence.logits_from - sequence.computed + 1;
  return std::min(all, std::max(to_first_logits, options_.max_scored_row));
}

void Scheduler::add_row(Sequence& sequence, int num_tokens) {
  PlanRow row;
  row.sequence = sequence.id;
  row.start = sequence.computed;
  row.count = num_tokens;
  row.samples = row.start + row.count == sequence.size();
  row.logits_from =
      std::clamp(sequence.logits_from - row.start, 0, row.samples ? row.count - 1 : row.count);
  budget_ -= row.count;
  sequence.is_planned = true;
  plan_.rows.push_back(row);
}

// What nobody else wants of the step, as long as it is a small one. Drafts take no block from a
// sequence.
void Scheduler::plan_drafts() {
  const int planned = options_.limits.max_tokens_per_step - budget_;
  int left = std::min(budget_, options_.max_tokens_with_drafts - planned);
  for (PlanRow& row : plan_.rows) {
    if (left <= 0) return;
    Sequence& sequence = *by_id_.at(row.sequence);
    if (!row.samples || sequence.draft.empty()) continue;
    const int wanted = std::min(
        {static_cast<int>(sequence.draft.size()), left, sequence.max_length - 1 - sequence.size()});
    grow_to(sequence, blocks_for(sequence.size() + wanted));
    const int room =
        static_cast<int>(sequence.blocks.size()) * options_.limits.block_size - sequence.size();
    row.num_drafts = std::clamp(room, 0, wanted);
    row.count += row.num_drafts;
    left -= row.num_drafts;
  }
}

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

// Whether somebody runs who makes room for this sequence to start.
bool Scheduler::gives_way(const Sequence& sequence) const {
  return !running_.empty() && running_.back()->priority < sequence.priority &&
         sequence.before(*running_.back());
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

// The first that is not waiting for another one's prompt.
Sequence* Scheduler::next_waiting() {
  for (const auto& sequence : waiting_) {
    const Sequence* leader = leader_of(*sequence);
    if (!leader || leader->prompt_computed()) return sequence.get();
  }
  return nullptr;
}

const Sequence* Scheduler::leader_of(const Sequence& sequence) const {
  return sequence.leader ? find(*sequence.leader) : nullptr;
}

// Gives the sequence its blocks. False: not now; it may have got some of them.
bool Scheduler::try_start(Sequence& sequence) {
  while (running_.size() >= most_running()) {
    if (!gives_way(sequence)) return false;
    preempt_last();
  }
  share_cached(sequence);
  const int num_blocks = blocks_for(sequence.size());
  const auto missing = [&] {
    return num_blocks - static_cast<int>(sequence.blocks.size()) - blocks_.num_free() -
           cache_.num_idle();
  };
  while (missing() > 0 && gives_way(sequence)) preempt_last();
  if (missing() > 0) return false;
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

void Scheduler::commit(const StepPlan& plan, std::span<const Accepted> accepted) {
  TRTMC_CHECK(accepted.size() == plan.rows.size(), "one result for each row");
  for (size_t i = 0; i < plan.rows.size(); ++i) commit_row(plan.rows[i], accepted[i].tokens);
}

void Scheduler::commit_row(const PlanRow& row, std::span<const TokenId> accepted) {
  const auto place = by_id_.find(row.sequence);
  if (place == by_id_.end()) return;
  Sequence& sequence = *place->second;
  TRTMC_CHECK(row.start == sequence.computed, "a plan is committed that is out of date");
  TRTMC_CHECK(accepted.empty() != row.samples, "a row gives tokens if it samples");

  sequence.computed += row.num_known();
  if (row.samples) {
    const auto drafts = accepted.first(accepted.size() - 1);
    TRTMC_CHECK(static_cast<int>(drafts.size()) <= row.num_drafts &&
                    std::equal(drafts.begin(), drafts.end(), sequence.draft.begin()),
                "accepted are the first drafts and one more token");
    sequence.computed += static_cast<int>(drafts.size());
    sequence.tokens.insert(sequence.tokens.end(), accepted.begin(), accepted.end());
    release_blocks_from(sequence, blocks_for(sequence.computed));
  }
  sequence.draft.clear();
  sequence.logits_from = std::max(sequence.logits_from, sequence.computed);
  const int block_size = options_.limits.block_size;
  for (int i = row.start / block_size; i < sequence.computed / block_size; ++i) {
    BlockId& block = sequence.blocks[static_cast<size_t>(i)];
    block = cache_.add(block_before(sequence, i), tokens_of_block(sequence, i), block);
  }
}

void Scheduler::discard(SequenceId id) {
  if (auto sequence = take_from(running_, id)) {
    for (; !sequence->blocks.empty(); sequence->blocks.pop_back()) {
      cache_.drop(sequence->blocks.back());
    }
  }
  finish(id);
}

void Scheduler::finish(SequenceId id) {
  by_id_.erase(id);
  if (auto sequence = take_from(running_, id)) {
    release_blocks_from(*sequence, 0);
    return;
  }
  take_from(waiting_, id);
}

}  // namespace trtmc
