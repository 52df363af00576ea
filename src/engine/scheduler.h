// Decides what each step computes: which sequences, how many of their tokens, in which KV blocks.
// Pure bookkeeping: the same calls give the same answers; no clock, no device, no thread.
//
// A step takes one token of every sequence that is generating, then fills up its token budget with
// prompts, in chunks, then with drafts. Sequences are served by priority and arrival. A waiting
// sequence starts when blocks for all its tokens are free, or when taking them from sequences of
// lower priority makes it so; those behind it may start before it for a while, if they find blocks
// that are free. What is generating grows block by block. Where no block is free the
// last in order gives up all of its blocks, waits again, and is computed anew, as far as its blocks
// have not stayed in the prefix cache. The first in order always goes on, so that everything ends.
// What follows for those who wait is in docs/engine.md.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv_blocks.h"
#include "engine/prefix_cache.h"
#include "engine/sequence.h"

namespace trtmc {

// Steps by which a priority is ahead of the next lower one: a sequence is served as if it had
// arrived that much earlier. Whoever waits is overtaken for so long only.
inline constexpr int64_t kPriorityLeadSteps = 1024;

// Sequences that are passed over at a time, so that what they cost a step is bounded.
inline constexpr int kMostPassedOver = 16;

struct SchedulerOptions {
  Limits limits{};          // max_tokens_per_step is the step's token budget.
  int max_waiting = 256;    // Sequences; beyond it admit() says kQueueFull.
  int max_scored_row = 64;  // Tokens a step of a sequence that wants all its logits: they are big.
  // Tokens of a step up to which drafts are computed: a device that has more to do takes as much
  // longer for a guess as it saves by a right one.
  int max_tokens_with_drafts = 32;
  // Steps from its arrival for which a waiting sequence that finds no blocks, and has had none, is
  // passed over by others that do.
  int64_t max_steps_passed_over = kPriorityLeadSteps;
  bool keeps_blocks = true;  // Full blocks stay in the cache after their sequences' ends.
};

enum class Admission { kAdmitted, kQueueFull, kTooLong };

// `count` tokens of a sequence from position `start`: known ones, then drafts.
struct PlanRow {
  SequenceId sequence = 0;
  int start = 0;
  int count = 0;
  int num_drafts = 0;  // The last of the `count` tokens: the first of Sequence::draft.
  // Logits are wanted of the row's tokens from this one on; `count`: of none.
  int logits_from = 0;
  // The last known token is among them: the step gives the sequence new tokens.
  bool samples = false;

  int num_known() const { return count - num_drafts; }
  int num_logits() const { return count - logits_from; }
  // Of these, the first, which score the prompt; the others give new tokens.
  int num_scored() const { return num_logits() - (samples ? num_drafts + 1 : 0); }
};

// Contents of a KV block that `sequence` needs in a block of its own.
struct BlockCopy {
  SequenceId sequence = 0;
  BlockId from = 0, to = 0;
};

struct StepPlan {
  std::vector<BlockCopy> copies;  // To be made in this order before the step.
  std::vector<PlanRow> rows;      // At most one of a sequence.
};

// What a row gave: as many drafts as were right, then one new token. Empty unless it samples.
struct Accepted {
  std::span<const TokenId> tokens;
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);
  Scheduler(Scheduler&&) = delete;

  // kTooLong: not even alone would it fit. Takes the memory that planning with one more sequence
  // needs: plan() and finish() need none. Without it std::bad_alloc, and nothing has changed.
  Admission admit(std::unique_ptr<Sequence> sequence);

  // Guesses at what follows the sequence's tokens; the next plan computes as many as have room.
  void propose(SequenceId sequence, std::span<const TokenId> draft);

  // Empty only if there is nothing to do. Every plan is committed before the next one, and a
  // sequence that has reached its max_length is finished before it. Valid until the next one.
  const StepPlan& plan();

  // `accepted`: [plan.rows]. Keys and values of drafts that were wrong are given up. Rows of
  // sequences that have been finished since are skipped.
  void commit(const StepPlan& plan, std::span<const Accepted> accepted);

  // Ends a sequence, whatever it was doing; its blocks are free. At any time.
  void finish(SequenceId sequence);
  // The same of one in whose blocks something is wrong: nobody takes over what it alone holds.
  void discard(SequenceId sequence);

  const Sequence* find(SequenceId sequence) const;
  bool empty() const { return running_.empty() && waiting_.empty(); }

  // For the invariants.
  using Sequences = std::vector<std::unique_ptr<Sequence>>;  // In the order of service.
  const Sequences& running() const { return running_; }
  const Sequences& waiting() const { return waiting_; }
  const KvBlocks& blocks() const { return blocks_; }
  const PrefixCache& cache() const { return cache_; }
  const SchedulerOptions& options() const { return options_; }
  // How often a sequence gave up its blocks before its end.
  int64_t num_preemptions() const { return num_preemptions_; }

 private:
  // A prompt that is being read, and how many of its tokens the step takes.
  struct Reader {
    Sequence* sequence;
    int num_tokens;
  };

  static void insert_in_order(Sequences& sequences, std::unique_ptr<Sequence> sequence);
  int blocks_for(int tokens) const;
  size_t most_running() const;
  std::span<const TokenId> tokens_of_block(const Sequence& sequence, int index) const;

  void make_room_to_plan();
  void plan_generating();
  void start_waiting();
  void plan_prompts();
  void plan_drafts();
  void deal_to_readers();
  int longest_row(const Sequence& sequence) const;
  void add_row(Sequence& sequence, int num_tokens);

  bool is_full() const { return running_.size() >= most_running(); }
  bool may_start(const Sequence& sequence) const;
  bool try_start(Sequence& sequence, bool may_preempt);
  bool try_to_take_blocks(Sequence& sequence, bool may_preempt);
  const Sequence* leader_of(const Sequence& sequence) const;
  int most_shared(const Sequence& sequence) const;
  void share_cached(Sequence& sequence);
  void copy_from_leader(Sequence& sequence);
  BlockId block_before(const Sequence& sequence, int index) const;

  std::optional<BlockId> try_allocate();
  bool grow_to(Sequence& sequence, int num_blocks);
  bool make_room_for_known(Sequence& sequence);
  std::span<const std::unique_ptr<Sequence>> giving_way_to(const Sequence& sequence) const;
  int num_blocks_given_up(std::span<const std::unique_ptr<Sequence>> sequences);
  void preempt_last();
  void commit_row(const PlanRow& row, std::span<const TokenId> accepted);
  void release(BlockId block);
  void release_blocks_from(Sequence& sequence, int first);

  SchedulerOptions options_;
  KvBlocks blocks_;
  PrefixCache cache_;
  Sequences running_;  // Hold blocks.
  Sequences waiting_;  // Hold none.
  std::unordered_map<SequenceId, Sequence*> by_id_;
  int64_t num_plans_ = 0;
  int64_t num_preemptions_ = 0;

  // Of the plan in the making; kept, and with room for what may come.
  StepPlan plan_;
  int budget_ = 0;            // Tokens that it may still take.
  std::vector<int> holders_;  // [num_blocks]: all 0 but while num_blocks_given_up() counts.
  std::vector<Reader> readers_;
  std::vector<Reader*> by_urgency_;
};

}  // namespace trtmc
