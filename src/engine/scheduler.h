// Decides what each step computes: which sequences, how many of their tokens, in which KV blocks.
// Pure bookkeeping: the same calls give the same answers; no clock, no device, no thread.
//
// A step takes one token (and drafts) of every sequence that is generating, then fills up its token
// budget with prompts, in chunks. Sequences are served by priority, then by arrival. A waiting
// sequence starts when blocks for all its tokens are free, or when taking them from sequences of
// lower priority makes it so; what is generating grows block by block. Where no block is free the
// last in order gives up all of its blocks, waits again, and is computed anew. The first in order
// always goes on, so that everything ends.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/kv_blocks.h"
#include "engine/sequence.h"

namespace trtmc {

struct SchedulerOptions {
  Limits limits{};          // max_tokens_per_step is the step's token budget.
  int max_waiting = 256;    // Sequences; beyond it admit() says kQueueFull.
  int max_scored_row = 64;  // Tokens a step of a sequence that wants all its logits: they are big.
};

enum class Admission { kAdmitted, kQueueFull, kTooLong };

// `count` tokens of a sequence from position `start`: known ones, then drafts.
struct PlanRow {
  SequenceId sequence = 0;
  int start = 0;
  int count = 0;
  std::vector<TokenId> draft;  // The last of the `count` tokens.
  // Logits are wanted of the row's tokens from this one on; `count`: of none.
  int logits_from = 0;
  // The last known token is among them: the step gives the sequence new tokens.
  bool samples = false;

  int num_logits() const { return count - logits_from; }
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
  std::vector<TokenId> tokens;
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);

  // kTooLong: not even alone would it fit.
  Admission admit(std::unique_ptr<Sequence> sequence);

  // Guesses at what follows the sequence's tokens; the next plan computes as many as have room.
  void propose(SequenceId sequence, std::vector<TokenId> draft);

  // Empty only if there is nothing to do. Every plan is committed before the next one, and a
  // sequence that has reached its max_length is finished before it.
  StepPlan plan();

  // `accepted`: [plan.rows]. Keys and values of drafts that were wrong are given up. Rows of
  // sequences that have been finished since are skipped.
  void commit(const StepPlan& plan, std::span<const Accepted> accepted);

  // Ends a sequence, whatever it was doing; its blocks are free. At any time.
  void finish(SequenceId sequence);

  const Sequence* find(SequenceId sequence) const;
  bool empty() const { return running_.empty() && waiting_.empty(); }

  // For the invariants.
  using Sequences = std::vector<std::unique_ptr<Sequence>>;  // In the order of service.
  const Sequences& running() const { return running_; }
  const Sequences& waiting() const { return waiting_; }
  const KvBlocks& blocks() const { return blocks_; }
  const SchedulerOptions& options() const { return options_; }

 private:
  // A plan in the making.
  struct PlanInProgress {
    StepPlan plan;
    int budget = 0;  // Tokens that it may still take.
  };

  int blocks_for(int tokens) const;
  bool has_room(const PlanInProgress& step) const;
  void plan_generating(PlanInProgress& step);
  void start_waiting(PlanInProgress& step);
  void plan_prompts(PlanInProgress& step);
  void add_row(PlanInProgress& step, Sequence& sequence, int num_drafts);
  bool make_room_for_known(PlanInProgress& step, Sequence& sequence);
  int make_room_for_drafts(Sequence& sequence, int budget);
  bool make_room_for_start(PlanInProgress& step, const Sequence& sequence);
  void preempt_last(PlanInProgress& step);
  Sequence* next_waiting();
  void commit_row(const PlanRow& row, std::span<const TokenId> accepted);
  void start_followers(const Sequence& leader);
  void take_over_prompt(SequenceId follower, const Sequence& leader);
  void release_blocks_from(Sequence& sequence, int first);

  SchedulerOptions options_;
  KvBlocks blocks_;
  Sequences running_;              // Hold blocks.
  Sequences waiting_;              // Hold none.
  std::vector<BlockCopy> copies_;  // For the next plan.
};

}  // namespace trtmc
