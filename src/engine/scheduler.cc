#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace trtmc {
namespace {

void insert_in_order(Scheduler::Sequences& sequences, std::unique_ptr<Sequence> sequence) {
  const auto place =
      std::ranges::find_if(sequences, [&](const auto& other) { return sequence->before(*other); });
  sequences.insert(place, std::move(sequence));
}

Scheduler::Sequences::iterator find_in(Scheduler::Sequences& sequences, SequenceId id) {
  return std::ranges::find_if(sequences, [&](const auto& other) { return other->id == id; });
}

std::unique_ptr<Sequence> take_from(Scheduler::Sequences& sequences, SequenceId id) {
  const auto place = find_in(sequences, id);
  if (place == sequences.end()) return nullptr;
  auto sequence = std::move(*place);
  sequences.erase(place);
  return sequence;
}

bool is_planned(const StepPlan& plan, SequenceId id) {
  return std::ranges::any_of(plan.rows, [&](const PlanRow& row) { return row.sequence == id; });
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options), blocks_(options.limits.num_blocks) {
  TRTMC_CHECK(options.limits.block_size > 0 && options.limits.max_tokens_per_step > 0 &&
                  options.limits.max_sequences_per_step > 0,
              "a step without room");
}

int Scheduler::blocks_for(int tokens) const {
  return (tokens + options_.limits.block_size - 1) / options_.limits.block_size;
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
  insert_in_order(waiting_, std::move(sequence));
  return Admission::kAdmitted;
}

const Sequence* Scheduler::find(SequenceId id) const {
  for (const Sequences* sequences : {&running_, &waiting_}) {
    for (const auto& sequence : *sequences) {
      if (sequence->id == id) return sequence.get();
    }
  }
  return nullptr;
}

void Scheduler::propose(SequenceId id, std::vector<TokenId> draft) {
  const auto place = find_in(running_, id);
  if (place != running_.end()) (*place)->draft = std::move(draft);
}

StepPlan Scheduler::plan() {
  PlanInProgress step{.plan = {}, .budget = options_.limits.max_tokens_per_step};
  plan_generating(step);
  start_waiting(step);
  plan_prompts(step);
  for (const BlockCopy& copy : std::exchange(copies_, {})) {
    // What was preempted or finished since no longer wants its copy.
    const Sequence* sequence = find(copy.sequence);
    if (sequence && std::ranges::count(sequence->blocks, copy.to) > 0) {
      step.plan.copies.push_back(copy);
    }
  }
  return std::move(step.plan);
}

bool Scheduler::has_room(const PlanInProgress& step) const {
  return step.budget > 0 &&
         static_cast<int>(step.plan.rows.size()) < options_.limits.max_sequences_per_step;
}

// First, since somebody is reading them.
void Scheduler::plan_generating(PlanInProgress& step) {
  for (size_t i = 0; i < running_.size() && has_room(step); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.num_uncomputed() != 1 || !make_room_for_known(step, sequence)) continue;
    add_row(step, sequence, make_room_for_drafts(sequence, step.budget - 1));
  }
}

void Scheduler::start_waiting(PlanInProgress& step) {
  while (Sequence* next = next_waiting()) {
    if (!make_room_for_start(step, *next)) return;
    for (int i = blocks_for(next->size()); i > 0; --i) {
      next->blocks.push_back(*blocks_.try_allocate());
    }
    insert_in_order(running_, take_from(waiting_, next->id));
  }
}

void Scheduler::plan_prompts(PlanInProgress& step) {
  for (size_t i = 0; i < running_.size() && has_room(step); ++i) {
    Sequence& sequence = *running_[i];
    if (is_planned(step.plan, sequence.id) || !make_room_for_known(step, sequence)) continue;
    add_row(step, sequence, 0);
  }
}

void Scheduler::add_row(PlanInProgress& step, Sequence& sequence, int num_drafts) {
  int known = std::min(sequence.num_uncomputed(), step.budget - num_drafts);
  if (sequence.logits_from < sequence.computed + known - 1) {
    known = std::min(known, options_.max_scored_row);
  }
  PlanRow row;
  row.sequence = sequence.id;
  row.start = sequence.computed;
  row.count = known + num_drafts;
  row.draft.assign(sequence.draft.begin(), sequence.draft.begin() + num_drafts);
  row.samples = row.start + known == sequence.size();
  row.logits_from =
      std::clamp(sequence.logits_from - row.start, 0, row.samples ? known - 1 : row.count);
  step.budget -= row.count;
  step.plan.rows.push_back(std::move(row));
}

// Blocks for all the sequence's tokens. False if the sequence itself had to give way.
bool Scheduler::make_room_for_known(PlanInProgress& step, Sequence& sequence) {
  while (static_cast<int>(sequence.blocks.size()) < blocks_for(sequence.size())) {
    if (const auto block = blocks_.try_allocate()) {
      sequence.blocks.push_back(*block);
      continue;
    }
    const bool itself = running_.back().get() == &sequence;
    preempt_last(step);
    if (itself) return false;
  }
  return true;
}

// How many drafts find room. They only take what is free.
int Scheduler::make_room_for_drafts(Sequence& sequence, int budget) {
  const int wanted = std::min(
      {static_cast<int>(sequence.draft.size()), budget, sequence.max_length - 1 - sequence.size()});
  while (static_cast<int>(sequence.blocks.size()) < blocks_for(sequence.size() + wanted)) {
    const auto block = blocks_.try_allocate();
    if (!block) break;
    sequence.blocks.push_back(*block);
  }
  const int room =
      static_cast<int>(sequence.blocks.size()) * options_.limits.block_size - sequence.size();
  return std::clamp(room, 0, std::max(0, wanted));
}

bool Scheduler::make_room_for_start(PlanInProgress& step, const Sequence& sequence) {
  const auto fits = [&] {
    return blocks_.num_free() >= blocks_for(sequence.size()) &&
           static_cast<int>(running_.size()) < options_.limits.max_sequences_per_step;
  };
  while (!fits() && !running_.empty() && running_.back()->priority < sequence.priority) {
    preempt_last(step);
  }
  return fits();
}

void Scheduler::preempt_last(PlanInProgress& step) {
  auto sequence = std::move(running_.back());
  running_.pop_back();
  std::erase_if(step.plan.rows, [&](const PlanRow& row) {
    if (row.sequence != sequence->id) return false;
    step.budget += row.count;
    return true;
  });
  release_blocks_from(*sequence, 0);
  sequence->computed = 0;
  sequence->draft.clear();
  insert_in_order(waiting_, std::move(sequence));
}

// The first that is not waiting for another one's prompt.
Sequence* Scheduler::next_waiting() {
  for (const auto& sequence : waiting_) {
    if (!sequence->leader || !find(*sequence->leader)) return sequence.get();
  }
  return nullptr;
}

void Scheduler::release_blocks_from(Sequence& sequence, int first) {
  while (static_cast<int>(sequence.blocks.size()) > first) {
    blocks_.release(sequence.blocks.back());
    sequence.blocks.pop_back();
  }
}

void Scheduler::commit(const StepPlan& plan, std::span<const Accepted> accepted) {
  TRTMC_CHECK(accepted.size() == plan.rows.size(), "one result for each row");
  for (size_t i = 0; i < plan.rows.size(); ++i) commit_row(plan.rows[i], accepted[i].tokens);
}

void Scheduler::commit_row(const PlanRow& row, std::span<const TokenId> accepted) {
  const auto place = find_in(running_, row.sequence);
  if (place == running_.end()) return;
  Sequence& sequence = **place;
  TRTMC_CHECK(row.start == sequence.computed, "a plan is committed that is out of date");
  TRTMC_CHECK(accepted.empty() != row.samples, "a row gives tokens if it samples");

  const bool prompt_was_computed = sequence.prompt_computed();
  sequence.computed += row.count - static_cast<int>(row.draft.size());
  if (row.samples) {
    const auto drafts = accepted.first(accepted.size() - 1);
    TRTMC_CHECK(drafts.size() <= row.draft.size() &&
                    std::equal(drafts.begin(), drafts.end(), row.draft.begin()),
                "accepted are the first drafts and one more token");
    sequence.computed += static_cast<int>(drafts.size());
    sequence.tokens.insert(sequence.tokens.end(), accepted.begin(), accepted.end());
    release_blocks_from(sequence, blocks_for(sequence.computed));
  }
  sequence.draft.clear();
  sequence.logits_from = std::max(sequence.logits_from, sequence.computed);
  if (!prompt_was_computed && sequence.prompt_computed()) start_followers(sequence);
}

void Scheduler::start_followers(const Sequence& leader) {
  std::vector<SequenceId> followers;
  for (const auto& sequence : waiting_) {
    if (sequence->leader != leader.id) continue;
    sequence->leader.reset();  // If it can't take over now it computes the prompt itself.
    followers.push_back(sequence->id);
  }
  for (const SequenceId follower : followers) take_over_prompt(follower, leader);
}

// All but the prompt's last token, which the follower computes itself for its logits. Full blocks
// are shared; of the one in which it will write it gets a copy.
void Scheduler::take_over_prompt(SequenceId id, const Sequence& leader) {
  Sequence& follower = **find_in(waiting_, id);
  const int computed = follower.prompt_size - 1;
  const int num_shared = computed / options_.limits.block_size;
  const bool copies = computed % options_.limits.block_size != 0;
  if (computed == 0 || (copies && blocks_.num_free() == 0)) return;
  for (int i = 0; i < num_shared; ++i) {
    follower.blocks.push_back(leader.blocks[static_cast<size_t>(i)]);
    blocks_.retain(follower.blocks.back());
  }
  if (copies) {
    const BlockId from = leader.blocks[static_cast<size_t>(num_shared)];
    follower.blocks.push_back(*blocks_.try_allocate());
    copies_.push_back({id, from, follower.blocks.back()});
  }
  follower.computed = computed;
  insert_in_order(running_, take_from(waiting_, id));
}

void Scheduler::finish(SequenceId id) {
  if (auto sequence = take_from(running_, id)) {
    release_blocks_from(*sequence, 0);
    return;
  }
  take_from(waiting_, id);
}

}  // namespace trtmc
