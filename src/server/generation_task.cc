#include "server/generation_task.h"

#include <utility>

#include "server/answer_stopwatch.h"

namespace trtmc {
namespace {

// A task takes so many before it is another one's turn: what a step gives to a request of 128
// answers.
constexpr int kMostEvents = 128;

class GenerationTask final : public EventPump::Task {
 public:
  GenerationTask(std::shared_ptr<Exchange> exchange, GenerationJob job,
                 const std::function<void()>& wake)
      : exchange_(std::move(exchange)),
        model_(std::move(job.model)),
        writer_(std::move(job.writer)),
        stopwatch_(model_->observer) {
    for (GenerationRequest& request : job.requests) {
      for (int i = 0; i < request.n; ++i) builders_.emplace_back(job.parser, /*keeps_top=*/false);
      const int first = static_cast<int>(builders_.size()) - request.n;
      const bool scored = request.echo_logprobs;
      prompts_.push_back({first, scored, model_->engine.submit(std::move(request), wake)});
    }
    stopwatch_.start(builders_.size());
    exchange_->note_model(model_->name);
  }

  Progress advance() override {
    try {
      return take_events();
    } catch (...) {  // No memory, say: the others go on.
      stopwatch_.ended(FinishReason::kError);
      fail();
      return Progress::kDone;
    }
  }

  void cancel() override {
    for (Prompt& prompt : prompts_) prompt.stream.cancel();
  }

 private:
  struct Prompt {
    int first_choice;
    bool scores_wanted;
    TokenStream stream;
  };

  // Within a catch block.
  void fail() noexcept {
    try {
      writer_->fail(told_error(current_error(), exchange_->request()));
    } catch (...) {
      exchange_->fail_for_memory();
    }
  }

  Progress take_events() {
    if (!std::exchange(has_begun_, true)) writer_->begin();
    int num_events = 0;
    bool all_ended = true;
    for (size_t i = 0; i < prompts_.size(); ++i) {
      Prompt& prompt = prompts_[i];
      while (auto event = prompt.stream.poll()) {
        if (event->finish == FinishReason::kError) {
          writer_->fail(told_error(Error(event->error_code, event->error), exchange_->request()));
          stopwatch_.ended(FinishReason::kError);
          return Progress::kDone;  // The other streams die, which cancels them.
        }
        if (std::exchange(prompt.scores_wanted, false)) {
          writer_->score_prompt(static_cast<int>(i), prompt.stream.prompt_scores());
        }
        take(prompt.first_choice + static_cast<int>(event->choice), std::move(*event));
        if (++num_events == kMostEvents) return Progress::kHasMore;
      }
      all_ended = all_ended && prompt.stream.has_ended();
    }
    if (!all_ended) return Progress::kWaits;
    end();
    return Progress::kDone;
  }

  void take(int choice, TokenEvent event) {
    AnswerBuilder& builder = builders_[static_cast<size_t>(choice)];
    const bool is_last = event.finish.has_value();
    std::optional<Token> stop;
    if (event.stop_token >= 0) stop = {event.stop_token, event.logprob, std::move(event.top)};
    if (event.token >= 0) stopwatch_.token(choice);
    Delta delta = builder.take(std::move(event));
    if (delta.token || delta.has_text()) writer_->add(choice, delta);
    if (!is_last) return;
    const Delta rest = builder.finish();
    if (rest.has_text()) writer_->add(choice, rest);
    if (stop) writer_->add_stop_token(choice, *stop);
    writer_->end_choice(choice, builder.answer());
    stopwatch_.ended(builder.answer().finish);
  }

  void end() {
    const Usage sum = usage();
    exchange_->note_tokens(sum.prompt_tokens, sum.completion_tokens);
    writer_->end(sum);
  }

  Usage usage() const {
    Usage sum;
    for (const Prompt& prompt : prompts_) {
      const Usage usage = prompt.stream.usage();
      sum.prompt_tokens += usage.prompt_tokens;
      sum.completion_tokens += usage.completion_tokens;
      sum.cached_tokens += usage.cached_tokens;
    }
    return sum;
  }

  // The model is declared before the streams, the exchange before all: they die in reverse.
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<ServedModel> model_;
  std::unique_ptr<AnswerWriter> writer_;
  AnswerStopwatch stopwatch_;
  std::vector<AnswerBuilder> builders_;  // [choice]
  std::vector<Prompt> prompts_;
  bool has_begun_ = false;
};

}  // namespace

void start_generation(EventPump& pump, const std::shared_ptr<Exchange>& exchange,
                      GenerationJob job) {
  const auto place = pump.reserve();
  exchange->on_gone([place] { place->cancel(); });
  pump.add(place,
           std::make_unique<GenerationTask>(exchange, std::move(job), [place] { place->wake(); }));
}

}  // namespace trtmc
