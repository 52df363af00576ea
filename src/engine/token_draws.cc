#include "engine/token_draws.h"

namespace trtmc {
namespace {

// True if the token is the row's next draft and the answer goes on.
bool take(TokenDraws::Draw& draw, Sampled& sampled) {
  const SequenceId id = draw.row->sequence;
  if (draw.num_drawn == 0 && draw.sequence->size() == draw.sequence->prompt_size) {
    draw.run->set_cached_tokens(id, draw.sequence->cached);
  }
  const TokenId token = sampled.token;
  draw.run->accept(id, sampled);
  draw.tokens[static_cast<size_t>(draw.num_drawn)] = token;
  ++draw.logits_row;
  const int draft = draw.num_drawn++;
  return draft < draw.row->num_drafts && !draw.run->has_ended(id) &&
         draw.sequence->draft[static_cast<size_t>(draft)] == token;
}

}  // namespace

std::span<const Accepted> TokenDraws::draw(const StepPlan& plan, const Logits& logits,
                                           const Scheduler& scheduler,
                                           FunctionRef<RequestRun&(SequenceId)> run_of) {
  begin(plan, scheduler, run_of);
  while (!open_.empty()) draw_round(logits);
  accepted_.assign(plan.rows.size(), {});
  for (const Draw& draw : draws_) {
    accepted_[static_cast<size_t>(draw.row - plan.rows.data())].tokens =
        draw.tokens.first(static_cast<size_t>(draw.num_drawn));
  }
  return accepted_;
}

void TokenDraws::begin(const StepPlan& plan, const Scheduler& scheduler,
                       FunctionRef<RequestRun&(SequenceId)> run_of) {
  size_t num_tokens = 0;
  for (const PlanRow& row : plan.rows) num_tokens += static_cast<size_t>(row.num_drafts) + 1;
  tokens_.resize(num_tokens);
  std::span<TokenId> rest = tokens_;
  draws_.clear();
  int logits_end = 0;
  for (const PlanRow& row : plan.rows) {
    logits_end += row.num_logits();
    if (!row.samples) continue;
    const int most = row.num_drafts + 1;
    draws_.push_back({.row = &row,
                      .sequence = scheduler.find(row.sequence),
                      .run = &run_of(row.sequence),
                      .logits_row = logits_end - most,
                      .tokens = rest.first(static_cast<size_t>(most))});
    rest = rest.subspan(static_cast<size_t>(most));
  }
  open_.clear();
  for (Draw& draw : draws_) open_.push_back(&draw);
}

void TokenDraws::draw_round(const Logits& logits) {
  sample_rows_.clear();
  for (const Draw* draw : open_) {
    sample_rows_.push_back(draw->run->sample_row(draw->row->sequence, draw->logits_row));
  }
  sampled_.resize(open_.size());
  logits.sample(sample_rows_, sampled_);
  size_t num_open = 0;
  for (size_t i = 0; i < open_.size(); ++i) {
    if (take(*open_[i], sampled_[i])) open_[num_open++] = open_[i];
  }
  open_.resize(num_open);
}

}  // namespace trtmc
