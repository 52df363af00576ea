#include "api/answer_builder.h"

#include <utility>

namespace trtmc {

AnswerBuilder::AnswerBuilder(std::optional<OutputParser> parser, bool keeps_top)
    : parser_(std::move(parser)),
      keeps_top_(keeps_top),
      start_(std::chrono::steady_clock::now()),
      first_(start_),
      last_(start_) {}

Delta AnswerBuilder::take(TokenEvent event) {
  if (event.finish) answer_.finish = *event.finish;
  Delta delta;
  if (event.finish == FinishReason::kError) return delta;
  add(parser_ ? parser_->append(event.text) : OutputDelta{"", std::move(event.text), {}}, delta);
  if (event.token >= 0) {
    last_ = std::chrono::steady_clock::now();
    if (answer_.tokens.empty()) first_ = last_;
    delta.token = Token{event.token, event.logprob, std::move(event.top)};
    answer_.tokens.push_back({event.token, event.logprob, {}});
    if (keeps_top_) answer_.tokens.back().top = delta.token->top;
  }
  return delta;
}

Delta AnswerBuilder::finish() {
  Delta rest;
  if (parser_) add(parser_->finish(), rest);
  answer_.prefill_ms = milliseconds_between(start_, first_);
  answer_.decode_ms = milliseconds_between(first_, last_);
  return rest;
}

void AnswerBuilder::add(OutputDelta parsed, Delta& delta) {
  answer_.content += parsed.content;
  answer_.reasoning += parsed.reasoning;
  answer_.tool_calls.insert(answer_.tool_calls.end(), parsed.tool_calls.begin(),
                            parsed.tool_calls.end());
  delta.content = std::move(parsed.content);
  delta.reasoning = std::move(parsed.reasoning);
  delta.tool_calls = std::move(parsed.tool_calls);
}

}  // namespace trtmc
