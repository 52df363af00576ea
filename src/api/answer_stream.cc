#include "api/answer_stream.h"

#include <utility>

#include "base/error.h"

namespace trtmc {

AnswerStream::AnswerStream(Engine& engine, GenerationRequest request,
                           std::optional<OutputParser> parser)
    : stream_(engine.submit(std::move(request))),
      parser_(std::move(parser)),
      start_(std::chrono::steady_clock::now()),
      first_(start_),
      last_(start_) {}

std::optional<Delta> AnswerStream::next() {
  if (ended_) return std::nullopt;
  while (std::optional<TokenEvent> event = stream_.next()) {
    Delta delta = take(std::move(*event));
    if (delta.token || delta.has_text()) return delta;
  }
  Delta rest;
  if (parser_) add(parser_->finish(), rest);
  finish();
  if (rest.has_text()) return rest;
  return std::nullopt;
}

Delta AnswerStream::take(TokenEvent event) {
  if (event.finish) answer_.finish = *event.finish;
  if (event.finish == FinishReason::kError) {
    ended_ = true;
    throw Error(event.error_code, event.error);
  }
  Delta delta;
  add(parser_ ? parser_->append(event.text) : OutputDelta{"", std::move(event.text), {}}, delta);
  if (event.token >= 0) {
    last_ = std::chrono::steady_clock::now();
    if (answer_.tokens.empty()) first_ = last_;
    delta.token = Token{event.token, event.logprob, std::move(event.top)};
    answer_.tokens.push_back(*delta.token);
  }
  return delta;
}

void AnswerStream::add(OutputDelta parsed, Delta& delta) {
  answer_.content += parsed.content;
  answer_.reasoning += parsed.reasoning;
  answer_.tool_calls.insert(answer_.tool_calls.end(), parsed.tool_calls.begin(),
                            parsed.tool_calls.end());
  delta.content = std::move(parsed.content);
  delta.reasoning = std::move(parsed.reasoning);
  delta.tool_calls = std::move(parsed.tool_calls);
}

void AnswerStream::finish() {
  ended_ = true;
  answer_.usage = stream_.usage();
  answer_.prefill_ms = milliseconds_between(start_, first_);
  answer_.decode_ms = milliseconds_between(first_, last_);
}

}  // namespace trtmc
