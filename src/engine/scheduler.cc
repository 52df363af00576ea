#include "engine/scheduler.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace trtmc {
namespace {

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
      cache_(blocks_, options.limits.block_size),
      holders_(static_cast<size_t>(options.limits.num_blocks)) {
  TRTMC_CHECK(options.limits.block_size > 0 && options.limits.max_tokens_per_step > 0 &&
                  options.limits.max_sequences_per_step > 0,
              "a step without room");
}

void Scheduler::insert_in_order(Sequences& sequences, std::unique_ptr<Sequence> sequence) {
  const auto place =
      std::ranges::find_if(sequences, [&](const auto& other) { return sequence->before(*other); });
  sequences.insert(place, std::move(sequence));
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
  sequence->arrival = num_plans_;
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

// In order. Who comes behind one that finds no blocks takes none from others, and does not come at
// all behind one that has had blocks: they are too few already for those who run.
void Scheduler::start_waiting() {
  int num_passed = 0;
  for (size_t i = 0; i < waiting_.size();) {
    Sequence& next = *waiting_[i];
    if (!may_start(next)) {
      ++i;
    } else if (try_start(next, /*may_preempt=*/num_passed == 0)) {
      insert_in_order(running_, take_from(waiting_, next.id));
    } else {
      const bool may_be_passed =
          !next.was_preempted && num_plans_ - next.arrival <= options_.max_steps_passed_over;
      if (is_full() || !may_be_passed || ++num_passed > kMostPassedOver) return;
      ++i;
    }
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

// It does not wait for another one's prompt.
bool Scheduler::may_start(const Sequence& sequence) const {
  const Sequence* leader = leader_of(sequence);
  return !leader || leader->prompt_computed();
}

const Sequence* Scheduler::leader_of(const Sequence& sequence) const {
  return sequence.leader ? find(*sequence.leader) : nullptr;
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
