// Draws the new tokens of a step from its logits, and hands them to their requests.
#pragma once

#include <span>
#include <vector>

#include "base/function_ref.h"
#include "engine/request_run.h"
#include "engine/scheduler.h"

namespace trtmc {

class TokenDraws {
 public:
  // A row of the plan that reaches its sequence's end.
  struct Draw {
    const PlanRow* row;
    const Sequence* sequence;
    RequestRun* run;
    int logits_row;             // Of the next token.
    std::span<TokenId> tokens;  // [num_drafts + 1], of which num_drawn are there.
    int num_drawn = 0;

    // The last one: there was none to draw.
    bool has_failed() const { return tokens[static_cast<size_t>(num_drawn) - 1] < 0; }
  };

  // Draws the next token of every row that samples. Where it is the row's next draft, the logits
  // after that draft are right too and give the token after it, and so on: each token with its own
  // number of the seed and the counts of all before it, so that the tokens are those of as many
  // steps without drafts. [plan.rows]; valid until the next call, as draws() are until the commit.
  std::span<const Accepted> draw(const StepPlan& plan, const Logits& logits,
                                 const Scheduler& scheduler,
                                 FunctionRef<RequestRun&(SequenceId)> run_of);

  std::span<const Draw> draws() const { return draws_; }

 private:
  void begin(const StepPlan& plan, const Scheduler& scheduler,
             FunctionRef<RequestRun&(SequenceId)> run_of);
  void draw_round(const Logits& logits);

  // Kept, so that a step allocates nothing.
  std::vector<Draw> draws_;
  std::vector<Draw*> open_;             // Those that go on.
  std::vector<SampleRow> sample_rows_;  // [open_]
  std::vector<Sampled> sampled_;        // [open_]
  std::vector<TokenId> tokens_;         // Of all draws.
  std::vector<Accepted> accepted_;      // [rows]
};

}  // namespace trtmc
