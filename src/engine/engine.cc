#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/engine_invariants.h"
#include "engine/mailbox.h"
#include "engine/request_check.h"
#include "engine/request_run.h"
#include "engine/scheduler.h"
#include "engine/shared_stream.h"
#include "engine/stats_counter.h"
#include "engine/step_arrays.h"
#include "engine/token_draws.h"

namespace trtmc {
namespace {

SchedulerOptions scheduler_options(const EngineModel& model, const EngineOptions& options) {
  SchedulerOptions result{.limits = model.executor->limits()};
  result.limits.max_tokens_per_step =
      std::clamp(options.max_tokens_per_step, 1, result.limits.max_tokens_per_step);
  result.keeps_blocks = options.prefix_cache;
  // The engine bounds its queue by requests, before they come here.
  result.max_waiting = std::numeric_limits<int>::max();
  return result;
}

}  // namespace

struct Engine::Impl {
  Impl(const EngineModel& of_model, const EngineOptions& of_options)
      : model(of_model),
        options(of_options),
        longest(of_model.longest_sequence()),
        scheduler(scheduler_options(of_model, of_options)) {
    counter.publish(scheduler);
    try {
      thread = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      throw Error(ErrorCode::kExhausted, "the system refused to start a thread");
    }
  }

  ~Impl() {
    {
      const std::lock_guard lock(mailbox->mutex);
      mailbox->stopping = true;
      mailbox->wake.notify_one();
    }
    thread.join();
  }

  // The engine's thread.
  void run() noexcept;
  bool take_mail();
  void serve() noexcept;
  void start_new();
  void start(RequestRun& run);
  void end(RequestRun& run, FinishReason reason, std::string_view error = {},
           ErrorCode code = ErrorCode::kInternal);
  void end_cancelled();
  void end_all(FinishReason reason, std::string_view error = {});
  void lose(std::string_view why);
  void leave_queue(RequestRun& run);
  void leave(RequestRun& run);
  void sweep();

  // One step.
  void step();
  const Logits& compute(const StepPlan& plan);
  void score_prompts(const StepPlan& plan, const Logits& logits);
  void score_prompt(const PlanRow& row, int first_logits_row, const Logits& logits);
  void discard_failed();
  void finish_or_guess();
  void fail_step(const StepPlan& plan, ErrorCode code, std::string_view message);
  void check_invariants() const;

  RequestRun& run_of(SequenceId id);

  const EngineModel model;
  const EngineOptions options;
  const int longest;
  const std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();

  // Of the engine's thread alone.
  Scheduler scheduler;
  std::vector<std::unique_ptr<RequestRun>> newcomers;  // Empty but while they are started.
  std::vector<std::unique_ptr<RequestRun>> runs;       // In the order of their ids.
  SequenceId next_id = 1;

  StepArrays arrays;
  TokenDraws draws;
  StatsCounter counter;

  std::thread thread;
};

void Engine::Impl::run() noexcept {
  while (take_mail()) {
    serve();
    counter.publish(scheduler);
  }
  end_all(FinishReason::kCancelled);
}

void Engine::Impl::serve() noexcept {
  try {
    // Written by this thread alone.
    if (!mailbox->lost.empty()) return end_all(FinishReason::kError, mailbox->lost);
    end_cancelled();
    step();
    sweep();
  } catch (const std::exception& error) {
    lose(error.what());  // Not a step that failed, which is dealt with there.
  } catch (...) {
    lose("something that is no exception was thrown");
  }
}

// Waits for something to do. False when it is to stop.
bool Engine::Impl::take_mail() {
  bool goes_on = false;
  {
    std::unique_lock lock(mailbox->mutex);
    mailbox->wake.wait(lock, [&] {
      return mailbox->stopping || mailbox->cancelled || !mailbox->submitted.empty() ||
             !scheduler.empty();
    });
    mailbox->cancelled = false;
    newcomers.swap(mailbox->submitted);
    goes_on = !mailbox->stopping;
  }
  start_new();
  return goes_on;
}

void Engine::Impl::start_new() {
  for (std::unique_ptr<RequestRun>& run : newcomers) {
    try {
      start(*run);
      runs.push_back(std::move(run));
    } catch (const std::bad_alloc&) {
      end(*run, FinishReason::kError, kOutOfMemory, ErrorCode::kExhausted);
      leave(*run);
    }
  }
  newcomers.clear();
}

void Engine::Impl::start(RequestRun& run) {
  auto sequences = run.make_sequences(next_id);
  next_id += static_cast<SequenceId>(run.num_choices());
  for (auto& sequence : sequences) {
    const Admission admission = scheduler.admit(std::move(sequence));
    TRTMC_CHECK(admission == Admission::kAdmitted,
                "submit() lets nothing through that is too long");
  }
}

RequestRun& Engine::Impl::run_of(SequenceId id) {
  const auto after = std::ranges::upper_bound(
      runs, id, {}, [](const std::unique_ptr<RequestRun>& run) { return run->first_id(); });
  TRTMC_CHECK(after != runs.begin() && (*std::prev(after))->has(id), "a sequence of no request");
  return **std::prev(after);
}

void Engine::Impl::leave_queue(RequestRun& run) {
  if (std::exchange(run.started, true)) return;
  const std::lock_guard lock(mailbox->mutex);
  --mailbox->num_queued;
}

// There is room for another one.
void Engine::Impl::leave(RequestRun& run) {
  leave_queue(run);
  const std::lock_guard lock(mailbox->mutex);
  mailbox->num_prompt_tokens -= run.num_prompt_tokens();
}

// Needs no memory.
void Engine::Impl::end(RequestRun& run, FinishReason reason, std::string_view error,
                       ErrorCode code) {
  for (int i = 0; i < run.num_choices(); ++i) {
    const SequenceId id = run.first_id() + static_cast<SequenceId>(i);
    scheduler.finish(id);
    run.end(id, reason, error, code);
  }
}

void Engine::Impl::end_cancelled() {
  for (const auto& run : runs) {
    if (run->is_cancelled()) end(*run, FinishReason::kCancelled);
  }
  sweep();
}

void Engine::Impl::end_all(FinishReason reason, std::string_view error) {
  for (const auto& run : runs) end(*run, reason, error);
  sweep();
}

void Engine::Impl::lose(std::string_view why) {
  log_error("the engine has lost its device: {}", why);
  {
    const std::lock_guard lock(mailbox->mutex);
    set_error(mailbox->lost, why);
  }
  end_all(FinishReason::kError, why);
}

// Forgets the requests that have ended.
void Engine::Impl::sweep() {
  std::erase_if(runs, [&](const auto& run) {
    if (!run->has_ended()) return false;
    leave(*run);
    return true;
  });
}

void Engine::Impl::step() {
  const StepPlan& plan = scheduler.plan();
  if (plan.rows.empty()) return;
  for (const PlanRow& row : plan.rows) leave_queue(run_of(row.sequence));
  counter.begin_step();
  try {
    const Logits& logits = compute(plan);
    score_prompts(plan, logits);
    const auto accepted = draws.draw(plan, logits, scheduler,
                                     [this](SequenceId id) -> RequestRun& { return run_of(id); });
    counter.count_step(plan, draws.draws());
    discard_failed();
    scheduler.commit(plan, accepted);
    finish_or_guess();
    counter.count_whole_step();
  } catch (const Error& error) {
    fail_step(plan, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    fail_step(plan, ErrorCode::kExhausted, kOutOfMemory);
  } catch (const std::exception& error) {
    fail_step(plan, ErrorCode::kInternal, error.what());
  }
  if (options.checks_invariants) check_invariants();
}

const Logits& Engine::Impl::compute(const StepPlan& plan) {
  for (const BlockCopy& copy : plan.copies) model.executor->copy_block(copy.from, copy.to);
  arrays.clear();
  for (const PlanRow& row : plan.rows) {
    const Sequence& sequence = *scheduler.find(row.sequence);
    const auto tokens =
        std::span(sequence.tokens)
            .subspan(static_cast<size_t>(row.start), static_cast<size_t>(row.num_known()));
    const auto drafts = std::span(sequence.draft).first(static_cast<size_t>(row.num_drafts));
    arrays.add(tokens, drafts, row.start, sequence.blocks, row.logits_from);
  }
  model.executor->submit(arrays.batch());
  return model.executor->wait();
}

void Engine::Impl::score_prompts(const StepPlan& plan, const Logits& logits) {
  int first = 0;
  for (const PlanRow& row : plan.rows) {
    if (row.num_scored() > 0) score_prompt(row, first, logits);
    first += row.num_logits();
  }
}

// Each token of the row but the last known one says how likely the token after it was.
void Engine::Impl::score_prompt(const PlanRow& row, int first_logits_row, const Logits& logits) {
  RequestRun& run = run_of(row.sequence);
  const std::vector<TokenId>& tokens = scheduler.find(row.sequence)->tokens;
  const int count = row.num_scored();
  const int start = row.start + row.logits_from;
  std::vector<ScoreRow> rows;
  rows.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    rows.push_back({.row = first_logits_row + i,
                    .target = tokens[static_cast<size_t>(start + i) + 1],
                    .top_logprobs = run.request().logprobs.value_or(0)});
  }
  std::vector<TokenScore> scores(rows.size());
  logits.score(rows, scores);
  for (int i = 0; i < count; ++i) {
    run.set_prompt_score(start + i, std::move(scores[static_cast<size_t>(i)]));
  }
}

// Before the commit: what has been computed for them must reach nobody else.
void Engine::Impl::discard_failed() {
  for (const TokenDraws::Draw& draw : draws.draws()) {
    if (!draw.has_failed()) continue;
    log_error("an answer was ended: {}", kNoNumbers);
    scheduler.discard(draw.row->sequence);
  }
}

void Engine::Impl::finish_or_guess() {
  for (const TokenDraws::Draw& draw : draws.draws()) {
    const SequenceId id = draw.row->sequence;
    if (draw.run->has_ended(id)) {
      scheduler.finish(id);
    } else if (options.speculate) {
      PromptLookup& lookup = draw.run->lookup(id);
      if (draw.row->num_drafts > 0) lookup.record(draw.row->num_drafts, draw.num_drawn - 1);
      scheduler.propose(id, lookup.propose(draw.sequence->tokens));
    }
  }
}

void Engine::Impl::fail_step(const StepPlan& plan, ErrorCode code, std::string_view message) {
  log_error("a step of {} sequences failed: {}", plan.rows.size(), message);
  counter.count_failed_step();
  if (code == ErrorCode::kInternal) return lose(message);
  const auto fail = [&](SequenceId id) {
    scheduler.finish(id);
    run_of(id).end(id, FinishReason::kError, message, code);
  };
  for (const PlanRow& row : plan.rows) fail(row.sequence);
  for (const BlockCopy& copy : plan.copies) fail(copy.sequence);  // It may not have been made.
}

void Engine::Impl::check_invariants() const {
  try {
    const auto violation = find_violation(take_snapshot(scheduler));
    TRTMC_CHECK(!violation, violation->c_str());
  } catch (const std::bad_alloc&) {
    return;  // The next step's check has more, perhaps.
  }
}

Engine::Engine(const LoadedModel& model, const EngineOptions& options)
    : Engine(model.engine_model(), options) {}

Engine::Engine(const EngineModel& model, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(model, options)) {}

Engine::~Engine() = default;

TokenStream Engine::submit(GenerationRequest request, std::function<void()> wake) {
  check_request(request, impl_->model, impl_->longest);
  Mailbox& mailbox = *impl_->mailbox;
  const auto prompt_size = static_cast<int>(request.prompt.size());
  const int64_t num_tokens = int64_t{prompt_size} * request.n;
  {
    const std::lock_guard lock(mailbox.mutex);
    mailbox.check_room(impl_->options, num_tokens);  // Before memory is taken for nothing.
  }
  const int room = impl_->longest - prompt_size;
  const int max_tokens = request.max_tokens > 0 ? std::min(request.max_tokens, room) : room;
  auto shared = std::make_shared<TokenStream::Shared>(impl_->mailbox, request.n, prompt_size,
                                                      std::move(wake));
  auto run = std::make_unique<RequestRun>(std::move(request), prompt_size + max_tokens,
                                          impl_->model.tokenizer, shared);

  const std::lock_guard lock(mailbox.mutex);
  mailbox.check_room(impl_->options, num_tokens);  // Others may have come.
  mailbox.submitted.push_back(std::move(run));
  ++mailbox.num_queued;
  mailbox.num_prompt_tokens += num_tokens;
  mailbox.wake.notify_one();
  return TokenStream(std::move(shared));
}

bool Engine::healthy() const {
  const std::lock_guard lock(impl_->mailbox->mutex);
  return impl_->mailbox->lost.empty();
}

EngineStats Engine::stats() const {
  EngineStats stats = impl_->counter.read();
  const std::lock_guard lock(impl_->mailbox->mutex);
  stats.queued_requests = impl_->mailbox->num_queued;
  return stats;
}

}  // namespace trtmc
